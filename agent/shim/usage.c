/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/usage.h"

#include "common/cleanup.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
        DEPTH_MAX = 500, /* a descriptor each */
        BLOCK = 512,     /* of st_blocks, on any file system */
};

static uint64_t add(uint64_t a, uint64_t b) {
        uint64_t sum;

        return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t usage_below(int dir_fd_taken, dev_t device, unsigned depth);

/* Each of several names of a file has its share, so that nobody need remember which were seen. */
static uint64_t usage_of(int dir_fd, const char *name, dev_t device, unsigned depth) {
        struct stat st;
        uint64_t bytes;
        int fd;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0 ||
            st.st_dev != device)
                return 0;
        bytes = (uint64_t) st.st_blocks * BLOCK;
        if (!S_ISDIR(st.st_mode))
                return bytes / MAX(st.st_nlink, (nlink_t) 1);
        if (depth >= DEPTH_MAX)
                return UINT64_MAX;
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? bytes : add(bytes, usage_below(fd, device, depth + 1));
}

static uint64_t usage_below(int dir_fd_taken, dev_t device, unsigned depth) {
        cleanup_closedir DIR *dir = fdopendir(dir_fd_taken);
        struct dirent *entry;
        uint64_t bytes = 0;

        if (!dir) {
                close_fd(dir_fd_taken);
                return 0;
        }
        while ((entry = readdir(dir)))
                if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
                        bytes = add(bytes, usage_of(dirfd(dir), entry->d_name, device, depth));
        return bytes;
}

uint64_t disk_usage(const char *path) {
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;

        if (fd < 0)
                return 0;
        if (fstat(fd, &st) < 0) {
                close_fd(fd);
                return 0;
        }
        return add((uint64_t) st.st_blocks * BLOCK, usage_below(fd, st.st_dev, 0));
}
