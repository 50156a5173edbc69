/* SPDX-License-Identifier: Apache-2.0 */

/* Detects a file that is still being written by a read lease, and not by the order of inotify
 * events: the kernel grants the lease only on a file that no process has open for writing. The
 * lease is released at once. Filesystems without leases always grant it; there a file is read again
 * when its writer closes it, which triggers an event. */

#include "agent/manifest/reader.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/strv.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

enum {
        SETTLED_MSEC = 100, /* a few ticks of the clock for file times */
        EMPTY_MSEC = 500,   /* an empty file this young is probably about to be written */
        QUIET_MSEC = 10000, /* then a process that keeps a file open is ignored */
};

#define NSEC_PER_MSEC INT64_C(1000000)

static bool is_manifest_name(const char *name) {
        static const char *const endings[] = { ".yaml", ".yml", ".json", ".manifest" };
        size_t n = strlen(name);

        if (name[0] == '.')
                return false;
        for (size_t i = 0; i < N_ELEMENTS(endings); i++) {
                size_t n_ending = strlen(endings[i]);

                if (n > n_ending && streq(name + n - n_ending, endings[i]))
                        return true;
        }
        return false;
}

static int compare_file_names(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static int list_names(DIR *dir, char ***names, size_t *n_names) {
        for (;;) {
                const struct dirent *entry;

                errno = 0;
                entry = readdir(dir);
                if (!entry)
                        return -errno;
                if (!is_manifest_name(entry->d_name))
                        continue;
                if (*n_names == MANIFEST_FILES_MAX)
                        return -E2BIG;
                if (!ARRAY_RESERVE(*names, *n_names, 2))
                        return -ENOMEM;
                (*names)[*n_names] = strdup(entry->d_name);
                if (!(*names)[*n_names])
                        return -ENOMEM;
                (*names)[++*n_names] = NULL;
        }
}

int list_manifest_files(int dir_fd, char ***ret_names) {
        cleanup_closedir DIR *dir = NULL;
        cleanup_strv char **names = NULL;
        size_t n_names = 0;
        int fd, r;

        /* A separate file description, so that reading starts at offset 0. */
        fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        dir = fdopendir(fd);
        if (!dir) {
                r = -errno;
                close_fd(fd);
                return r;
        }
        r = list_names(dir, &names, &n_names);
        if (r < 0)
                return r;
        if (n_names > 0)
                qsort(names, n_names, sizeof(*names), compare_file_names);
        *ret_names = TAKE_PTR(names);
        return 0;
}

static int64_t age_msec(const struct stat *st) {
        FileStamp stamp = file_stamp_of(st);
        int64_t changed = MAX(stamp.modified_nsec, stamp.changed_nsec);

        return ((int64_t) now_realtime_usec() * 1000 - changed) / NSEC_PER_MSEC;
}

/* If the clock was set back, a file must not look recent for long. */
static bool is_younger(const struct stat *st, int64_t msec) {
        int64_t age = age_msec(st);

        return age < msec && age > -msec;
}

static const char *file_type_name(mode_t mode) {
        switch (mode & S_IFMT) {
        case S_IFDIR:
                return "directory";
        case S_IFIFO:
                return "FIFO";
        case S_IFSOCK:
                return "socket";
        case S_IFCHR:
        case S_IFBLK:
                return "device";
        default:
                return "special file";
        }
}

static int check_manifest_file_type(const char *name, const struct stat *st, Error *reterr) {
        if (!S_ISREG(st->st_mode))
                return error_setf(reterr, EINVAL, "%s: is a %s; only regular files are read", name,
                                  file_type_name(st->st_mode));
        if ((uint64_t) st->st_size > MANIFEST_BYTES_MAX)
                return error_setf(reterr, EFBIG, "%s: is larger than %zu MiB", name,
                                  MANIFEST_BYTES_MAX / MIB);
        return 0;
}

static int explain_manifest_open_error(const char *name, int r, bool is_link, Error *reterr) {
        if (!is_link && r == -ENOENT)
                return r;
        if (is_link && r == -ENOENT)
                return error_setf(reterr, ENOENT, "%s: is a link to a file that does not exist",
                                  name);
        if (is_link && r == -EXDEV)
                return error_setf(reterr, EXDEV,
                                  "%s: is a link that leads out of the directory; "
                                  "only links within it are followed",
                                  name);
        if (is_link && r == -ELOOP)
                return error_setf(reterr, ELOOP, "%s: is a link that leads in a circle", name);
        return error_prefixf(reterr, r, "%s", name);
}

/* The lease is held only between two calls. If a process opens the file in that time, the kernel
 * sends a signal, which must be one without effect. */
static bool has_writer(int fd) {
        if (fcntl(fd, F_SETSIG, SIGWINCH) < 0 || fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
                return errno == EAGAIN;
        (void) fcntl(fd, F_SETLEASE, F_UNLCK);
        return false;
}

static bool is_being_written(int fd, const struct stat *st) {
        if (st->st_size == 0 && is_younger(st, EMPTY_MSEC))
                return true;
        return is_younger(st, QUIET_MSEC) && has_writer(fd);
}

/* Opens a manifest or a link to one. A FIFO or device is never opened. */
static int open_manifest(int dir_fd, const char *name, struct stat *ret_st, Error *reterr) {
        cleanup_close int fd = -EBADF;
        bool is_link;
        int r;

        if (fstatat(dir_fd, name, ret_st, AT_SYMLINK_NOFOLLOW) < 0)
                return explain_manifest_open_error(name, -errno, /* is_link= */ false, reterr);
        is_link = S_ISLNK(ret_st->st_mode);
        if (!is_link) {
                r = check_manifest_file_type(name, ret_st, reterr);
                if (r < 0)
                        return r;
        }
        fd = open_beneath(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
        if (fd < 0)
                return explain_manifest_open_error(name, fd, is_link, reterr);
        if (fstat(fd, ret_st) < 0)
                return error_prefixf(reterr, -errno, "%s", name);
        r = check_manifest_file_type(name, ret_st, reterr);
        return r < 0 ? r : TAKE_FD(fd);
}

int read_manifest_file(int dir_fd, const char *name, ManifestStamp *stamp, char **ret_data,
                       size_t *ret_length, Error *reterr) {
        cleanup_close int fd = -EBADF;
        cleanup_free char *data = NULL;
        ManifestStamp before;
        FileStamp after;
        struct stat st;
        size_t length;
        int r;

        fd = open_manifest(dir_fd, name, &st, reterr);
        if (fd < 0)
                return fd;
        before = (ManifestStamp){ file_stamp_of(&st), !is_younger(&st, SETTLED_MSEC) };
        if (stamp->is_settled && file_stamps_match(&stamp->file, &before.file))
                return READER_UNCHANGED;
        if (is_being_written(fd, &st))
                return READER_BUSY;
        r = read_stream(fd, MANIFEST_BYTES_MAX, &data, &length);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", name);
        if (fstat(fd, &st) < 0)
                return error_prefixf(reterr, -errno, "%s", name);
        after = file_stamp_of(&st);
        /* A writer opened the file during the read. */
        if (!file_stamps_match(&before.file, &after))
                return READER_BUSY;
        *stamp = before;
        *ret_data = TAKE_PTR(data);
        *ret_length = length;
        return 0;
}
