/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/disk-usage.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/saturating.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
        DEPTH_MAX = 500, /* one descriptor for each level */
        BLOCK = 512,     /* unit of st_blocks, on any file system */
};

/* The state of walking one directory. */
typedef struct DiskUsageWalk {
        dev_t device;
        uint64_t until;
        StorageTaken taken;
} DiskUsageWalk;

static void walk_disk_usage(int dir_fd_taken, DiskUsageWalk *walk, unsigned depth);

/* A file with several names is counted in shares, one for each name, so that no list of visited
 * inodes is needed. An inode cannot be divided and is counted for each name. */
static void add_disk_usage_of_stat(DiskUsageWalk *walk, const struct stat *st) {
        uint64_t names = S_ISDIR(st->st_mode) ? 1 : MAX(st->st_nlink, (nlink_t) 1);
        uint64_t bytes = (uint64_t) st->st_blocks * BLOCK / names;

        walk->taken.bytes = add_saturating(walk->taken.bytes, bytes);
        walk->taken.inodes = add_saturating(walk->taken.inodes, 1);
}

static void add_disk_usage_of_entry(int dir_fd, const char *name, DiskUsageWalk *walk,
                                    unsigned depth) {
        struct stat st;
        int fd;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0 ||
            st.st_dev != walk->device)
                return;
        add_disk_usage_of_stat(walk, &st);
        if (!S_ISDIR(st.st_mode))
                return;
        if (depth >= DEPTH_MAX) {
                walk->taken = (StorageTaken){ .bytes = UINT64_MAX, .inodes = UINT64_MAX };
                return;
        }
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
                walk_disk_usage(fd, walk, depth + 1);
}

/* A container can create files faster than they are counted. */
static bool is_walk_cut(DiskUsageWalk *walk) {
        walk->taken.is_cut = walk->taken.is_cut || now_boottime_usec() >= walk->until;
        return walk->taken.is_cut;
}

static void walk_disk_usage(int dir_fd_taken, DiskUsageWalk *walk, unsigned depth) {
        cleanup_closedir DIR *dir = fdopendir(dir_fd_taken);
        struct dirent *entry;

        if (!dir) {
                close_fd(dir_fd_taken);
                return;
        }
        keep_access_time(dir_fd_taken);
        while (!is_walk_cut(walk) && (entry = readdir(dir)))
                if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
                        add_disk_usage_of_entry(dirfd(dir), entry->d_name, walk, depth);
}

StorageTaken storage_taken(const char *path, uint64_t until_usec) {
        int fd = open_no_symlinks(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
        DiskUsageWalk walk = { .until = until_usec };
        struct stat st;

        if (fd < 0)
                return walk.taken;
        if (fstat(fd, &st) < 0) {
                close_fd(fd);
                return walk.taken;
        }
        walk.device = st.st_dev;
        add_disk_usage_of_stat(&walk, &st);
        walk_disk_usage(fd, &walk, 0);
        return walk.taken;
}
