/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/disk-usage.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
        DEPTH_MAX = 500, /* a descriptor for each level */
        BLOCK = 512,     /* unit of st_blocks, on any file system */
};

static uint64_t add_saturating(uint64_t a, uint64_t b) {
        uint64_t sum;

        return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* A walk through one directory. */
typedef struct DiskUsageWalk {
        dev_t device;
        bool counts_inodes; /* else bytes */
} DiskUsageWalk;

static uint64_t disk_usage_below(int dir_fd_taken, const DiskUsageWalk *walk, unsigned depth);

static uint64_t disk_usage_of_stat(const DiskUsageWalk *walk, const struct stat *st) {
        return walk->counts_inodes ? 1 : (uint64_t) st->st_blocks * BLOCK;
}

/* A file with several names is counted in shares, one for each name, so that no list of seen inodes
 * is needed. An inode cannot be divided and is counted with each name. */
static uint64_t disk_usage_of_entry(int dir_fd, const char *name, const DiskUsageWalk *walk,
                                    unsigned depth) {
        struct stat st;
        uint64_t used;
        int fd;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0 ||
            st.st_dev != walk->device)
                return 0;
        used = disk_usage_of_stat(walk, &st);
        if (!S_ISDIR(st.st_mode))
                return walk->counts_inodes ? used : used / MAX(st.st_nlink, (nlink_t) 1);
        if (depth >= DEPTH_MAX)
                return UINT64_MAX;
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? used : add_saturating(used, disk_usage_below(fd, walk, depth + 1));
}

static uint64_t disk_usage_below(int dir_fd_taken, const DiskUsageWalk *walk, unsigned depth) {
        cleanup_closedir DIR *dir = fdopendir(dir_fd_taken);
        struct dirent *entry;
        uint64_t used = 0;

        if (!dir) {
                close_fd(dir_fd_taken);
                return 0;
        }
        while ((entry = readdir(dir)))
                if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
                        used = add_saturating(
                                used, disk_usage_of_entry(dirfd(dir), entry->d_name, walk, depth));
        return used;
}

static uint64_t disk_usage_at(const char *path, bool counts_inodes) {
        int fd = open_no_symlinks(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
        DiskUsageWalk walk = { .counts_inodes = counts_inodes };
        struct stat st;

        if (fd < 0)
                return 0;
        if (fstat(fd, &st) < 0) {
                close_fd(fd);
                return 0;
        }
        walk.device = st.st_dev;
        return add_saturating(disk_usage_of_stat(&walk, &st), disk_usage_below(fd, &walk, 0));
}

uint64_t disk_usage(const char *path) {
        return disk_usage_at(path, /* counts_inodes= */ false);
}

uint64_t inode_usage(const char *path) {
        return disk_usage_at(path, /* counts_inodes= */ true);
}
