/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/volume-group.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
        GROUP_DEPTH_MAX = 512,
        FILE_MODE = 0660,
        DIRECTORY_MODE = 02770,
};

static int set_group_of_entry(int dir_fd, const char *name, gid_t group, unsigned depth);

static int set_group_below(int dir_fd, gid_t group, unsigned depth) {
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        cleanup_closedir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        const struct dirent *entry;

        if (!dir) {
                r = -errno;
                close_fd(copy);
                return r;
        }
        while ((r = read_directory_entry(dir, &entry)) > 0) {
                r = set_group_of_entry(dir_fd, entry->d_name, group, depth);
                if (r < 0)
                        return r;
        }
        return r;
}

/* The mode is set after the owner, because changing the owner clears bits. */
static int set_group_of_fd(int fd, const struct stat *st, gid_t group) {
        mode_t mode = st->st_mode & 07777;
        char path[64];

        if (fchownat(fd, "", (uid_t) -1, group, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        if (S_ISLNK(st->st_mode))
                return 0;
        mode |= S_ISDIR(st->st_mode) ? DIRECTORY_MODE : FILE_MODE;
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return chmod(path, mode) < 0 ? -errno : 0;
}

static int set_group_of_entry(int dir_fd, const char *name, gid_t group, unsigned depth) {
        cleanup_close int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;
        int r = 0;

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                r = depth < GROUP_DEPTH_MAX ? set_group_below(fd, group, depth + 1) : -ELOOP;
        return r < 0 ? r : set_group_of_fd(fd, &st, group);
}

/* A walk changes the root last. */
static bool has_group(const char *path, gid_t group) {
        struct stat st;

        return stat(path, &st) >= 0 && st.st_gid == group &&
               (st.st_mode & DIRECTORY_MODE) == DIRECTORY_MODE;
}

int volume_set_fs_group(const char *path, const char *group, Error *reterr) {
        char *rest;
        unsigned long gid = strtoul(group, &rest, 10);
        cleanup_close int fd = -EBADF;
        int r;

        if (rest == group || (rest[0] && !streq(rest, ":root-mismatch")) || gid > UINT32_MAX - 1)
                return error_setf(reterr, EINVAL, "'%s' is not a group", group);
        if (rest[0] && has_group(path, (gid_t) gid))
                return 0;
        /* A PersistentVolume's path may be a link; links in the volume are not followed. */
        fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        r = fd < 0 ? -errno : set_group_of_entry(fd, ".", (gid_t) gid, 0);
        if (r < 0)
                return error_setf(reterr, -r, "cannot give '%s' to the group %lu: %s", path, gid,
                                  strerror(-r));
        return 0;
}
