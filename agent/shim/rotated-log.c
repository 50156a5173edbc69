/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/rotated-log.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <time.h>

enum {
        ROTATIONS_PER_SECOND_MAX = 1000000,
        STAMP_SIZE = sizeof(".20260102-030405.000001"),
};

struct RotatedLog {
        int dir_fd;
        char *name;
        uint64_t
                rotated_second; /* second of the last rotation, and the number of rotations in it */
        unsigned rotated_number;
        int rotation_error; /* result of the last rotation: 0 or -errno */
};

bool rotated_log_may_open_later(int r) {
        return r == -ENOSPC || r == -EDQUOT || r == -EIO || r == -EROFS || r == -ENOMEM ||
               r == -EMFILE || r == -ENFILE;
}

int rotated_log_new(const char *path, RotatedLog **ret, Error *reterr) {
        cleanup_with(rotated_log_freep) RotatedLog *file = calloc(1, sizeof(*file));
        const char *name;

        if (!file)
                return -ENOMEM;
        file->dir_fd = -EBADF;
        if (path[0] != '/')
                return error_setf(reterr, EINVAL, "'%s' is not a path of a log file", path);
        file->dir_fd = open_parent_no_symlinks(path, &name);
        if (file->dir_fd < 0)
                return error_setf(reterr, -file->dir_fd, "cannot open the log '%s': %s", path,
                                  strerror(-file->dir_fd));
        file->name = strdup(name);
        if (!file->name)
                return -ENOMEM;
        *ret = TAKE_PTR(file);
        return 0;
}

int rotated_log_open(RotatedLog *file, OpenedLog *ret) {
        cleanup_close int fd = openat(file->dir_fd, file->name,
                                      O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK |
                                              O_NOCTTY | O_CLOEXEC,
                                      0640);
        struct stat st;

        FAIL_AT("log.open");
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
                return -EINVAL;
        ret->fd = TAKE_FD(fd);
        return 0;
}

void rotated_log_remove_empty(const RotatedLog *file) {
        struct stat st;

        if (fstatat(file->dir_fd, file->name, &st, AT_SYMLINK_NOFOLLOW) >= 0 &&
            S_ISREG(st.st_mode) && st.st_size == 0)
                (void) unlinkat(file->dir_fd, file->name, 0);
}

static int compare_rotated_names(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Removes the oldest rotated files until 'keep' are left. Their names sort by age. */
static void remove_oldest_rotated_logs(RotatedLog *file, size_t keep) {
        cleanup_strv char **names = NULL;
        cleanup_closedir DIR *dir = NULL;
        size_t prefix = strlen(file->name), n = 0;
        struct dirent *entry;
        int fd = openat(file->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir) {
                close_fd(fd);
                return;
        }
        while ((entry = readdir(dir)))
                if (strncmp(entry->d_name, file->name, prefix) == 0 &&
                    entry->d_name[prefix] == '.' && strv_append(&names, entry->d_name) >= 0)
                        n++;
        if (n == 0)
                return;
        qsort(names, n, sizeof(*names), compare_rotated_names);
        for (size_t i = 0; i + keep < n; i++)
                (void) unlinkat(file->dir_fd, names[i], 0);
}

/* Renames the file to a name that sorts after all earlier ones, even when several rotations happen
 * in one second or the clock is set back. */
static int rename_full_log(RotatedLog *file, uint64_t realtime_usec) {
        uint64_t second = MAX(realtime_usec / USEC_PER_SEC, file->rotated_second);
        unsigned first = second == file->rotated_second ? file->rotated_number + 1 : 0;
        char stamp[STAMP_SIZE];
        struct tm tm;
        size_t n;

        utc_from_seconds(second, &tm);
        n = strftime(stamp, sizeof(stamp), ".%Y%m%d-%H%M%S", &tm);
        for (unsigned i = first; i < ROTATIONS_PER_SECOND_MAX; i++) {
                cleanup_free char *name = NULL;

                if (i > 0)
                        (void) snprintf(stamp + n, sizeof(stamp) - n, ".%06u", i);
                name = text_format("%s%s", file->name, stamp);
                if (!name)
                        return -ENOMEM;
                file->rotated_second = second;
                file->rotated_number = i;
                if (renameat2(file->dir_fd, file->name, file->dir_fd, name, RENAME_NOREPLACE) >=
                            0 ||
                    errno == ENOENT) /* the file was removed: create it again */
                        return 0;
                if (errno != EEXIST)
                        return -errno;
        }
        return -EEXIST;
}

static int open_next_log(RotatedLog *file, unsigned max_files, uint64_t realtime_usec,
                         OpenedLog *ret) {
        int r = rename_full_log(file, realtime_usec);

        if (r < 0)
                return r;
        FAIL_AT("log.rotate");
        ret->is_rotated = true;
        remove_oldest_rotated_logs(file, max_files > 1 ? max_files - 1 : 0);
        return rotated_log_open(file, ret);
}

int rotated_log_rotate(RotatedLog *file, unsigned max_files, uint64_t realtime_usec,
                       OpenedLog *ret) {
        int before = file->rotation_error;

        file->rotation_error = open_next_log(file, max_files, realtime_usec, ret);
        if (file->rotation_error < 0 && before >= 0)
                log_warning_errno(file->rotation_error, "Cannot rotate log '%s'", file->name);
        return file->rotation_error;
}

RotatedLog *rotated_log_free(RotatedLog *file) {
        if (!file)
                return NULL;
        close_fd(file->dir_fd);
        free(file->name);
        free(file);
        return NULL;
}
