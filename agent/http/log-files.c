/* SPDX-License-Identifier: Apache-2.0 */

/* The files of a container's log, which may be rotated while they are read; see the header. */

#include "agent/http/log-files.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
        OPEN_TRIES_MAX = 16
};

void log_files_done(LogFiles *files) {
        free(files->items);
        *files = (LogFiles){ 0 };
}

static void current_log_name(unsigned attempt, char name[LOG_FILE_NAME_MAX]) {
        (void) snprintf(name, LOG_FILE_NAME_MAX, "%u.log", attempt);
}

/* True for "<n>.log" and "<n>.log.<digit…>", but not for a compressed file. */
static bool is_log_file_of(const char *name, const char *current) {
        size_t n = strlen(current), length = strlen(name);

        if (length >= LOG_FILE_NAME_MAX || strncmp(name, current, n) != 0)
                return false;
        if (name[n] == '\0')
                return true;
        return name[n] == '.' && name[n + 1] >= '0' && name[n + 1] <= '9' &&
               strspn(name + n + 1, "0123456789-.") == length - n - 1;
}

/* Rotated files by their time; the current one, whose name is the shortest, comes last. */
static int compare_log_files(const void *a, const void *b) {
        const LogFile *x = a, *y = b;
        bool x_rotated = strstr(x->name, ".log.") != NULL;
        bool y_rotated = strstr(y->name, ".log.") != NULL;

        if (x_rotated != y_rotated)
                return x_rotated ? -1 : 1;
        return strverscmp(x->name, y->name);
}

static int append_log_file(int dir_fd, const char *name, LogFiles *files) {
        struct stat st;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (files->n >= LOG_FILES_MAX)
                return -E2BIG;
        if (!ARRAY_RESERVE(files->items, files->n, 1))
                return -ENOMEM;
        files->items[files->n] = (LogFile){ .inode = st.st_ino, .written = st.st_mtim };
        (void) snprintf(files->items[files->n].name, LOG_FILE_NAME_MAX, "%s", name);
        files->n++;
        return 0;
}

/* Uses a separate descriptor, because a duplicate would share the position. NULL with errno on
 * failure. */
static DIR *reopen_log_directory(int dir_fd) {
        int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

        if (!dir)
                close_fd(fd);
        return dir;
}

int log_files_list(int dir_fd, unsigned attempt, LogFiles *ret) {
        cleanup_closedir DIR *dir = reopen_log_directory(dir_fd);
        cleanup_with(log_files_done) LogFiles files = { 0 };
        char current[LOG_FILE_NAME_MAX];
        struct dirent *entry;

        if (!dir)
                return -errno;
        current_log_name(attempt, current);
        for (errno = 0; (entry = readdir(dir)); errno = 0) {
                int r = is_log_file_of(entry->d_name, current)
                                ? append_log_file(dir_fd, entry->d_name, &files)
                                : 0;

                if (r < 0)
                        return r;
        }
        if (errno != 0)
                return -errno;
        if (files.n > 1)
                qsort(files.items, files.n, sizeof(*files.items), compare_log_files);
        *ret = files;
        files = (LogFiles){ 0 };
        return 0;
}

int log_file_open(int dir_fd, const LogFile *file) {
        cleanup_close int fd = -EBADF;
        struct stat st;

        /* The name is a single component, so O_NOFOLLOW is sufficient against symbolic links. */
        fd = open_beneath(dir_fd, file->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
                return -EPERM;
        if (st.st_ino != file->inode)
                return -ESTALE;
        return TAKE_FD(fd);
}

static bool was_written_before(const struct timespec *a, const struct timespec *b) {
        return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* The index after that of 'from'. If 'from' no longer exists, because it was the oldest file or was
 * removed by hand, the next file is the first one that was written later. */
static size_t index_after_log_file(const LogFiles *files, const struct stat *from) {
        size_t i;

        for (i = 0; i < files->n; i++)
                if (files->items[i].inode == from->st_ino)
                        return i + 1;
        for (i = 0; i < files->n; i++)
                if (!was_written_before(&files->items[i].written, &from->st_mtim))
                        break;
        return i;
}

/* The index before that of 'from', or the number of files. */
static size_t index_before_log_file(const LogFiles *files, const struct stat *from) {
        for (size_t i = 1; i < files->n; i++)
                if (files->items[i].inode == from->st_ino)
                        return i - 1;
        return files->n;
}

/* The file that is currently next to 'from_fd': 1, 0 or -errno. */
static int find_adjacent_log_file(int dir_fd, unsigned attempt, int from_fd, bool forward,
                                  LogFile *ret) {
        cleanup_with(log_files_done) LogFiles files = { 0 };
        struct stat from = { 0 };
        size_t i;
        int r;

        r = log_files_list(dir_fd, attempt, &files);
        if (r < 0)
                return r;
        if (files.n == 0)
                return 0;
        if (from_fd < 0)
                i = forward ? 0 : files.n - 1;
        else if (fstat(from_fd, &from) < 0)
                return -errno;
        else
                i = forward ? index_after_log_file(&files, &from)
                            : index_before_log_file(&files, &from);
        if (i >= files.n)
                return 0;
        *ret = files.items[i];
        return 1;
}

/* If a directory is listed while files in it are renamed, a file may appear twice or not at all. So
 * the choice is repeated after the file has been opened, and is valid only if it is the same. */
static int open_adjacent_log_file(int dir_fd, unsigned attempt, int from_fd, bool forward,
                                  int *ret_fd) {
        for (unsigned i = 0; i < OPEN_TRIES_MAX; i++) {
                cleanup_close int fd = -EBADF;
                LogFile file = { 0 }, again = { 0 };
                int r;

                r = find_adjacent_log_file(dir_fd, attempt, from_fd, forward, &file);
                if (r <= 0)
                        return r;
                fd = log_file_open(dir_fd, &file);
                if (fd == -ENOENT || fd == -ESTALE)
                        continue;
                if (fd < 0)
                        return fd;
                r = find_adjacent_log_file(dir_fd, attempt, from_fd, forward, &again);
                if (r < 0)
                        return r;
                if (r == 0 || again.inode != file.inode)
                        continue;
                *ret_fd = TAKE_FD(fd);
                return 1;
        }
        return -EAGAIN;
}

int log_files_open_next(int dir_fd, unsigned attempt, int from_fd, int *ret_fd) {
        return open_adjacent_log_file(dir_fd, attempt, from_fd, true, ret_fd);
}

int log_files_open_previous(int dir_fd, unsigned attempt, int from_fd, int *ret_fd) {
        return open_adjacent_log_file(dir_fd, attempt, from_fd, false, ret_fd);
}

ino_t log_files_current(int dir_fd, unsigned attempt) {
        char name[LOG_FILE_NAME_MAX];
        struct stat st;

        current_log_name(attempt, name);
        return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : st.st_ino;
}
