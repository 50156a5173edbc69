/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into an agent and what it starts: each write to a file below a directory takes longer,
 * and so does each sync of one. A file has the milliseconds of both; it may change meanwhile. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
        SLICE_MSEC = 20
};

static long read_delay(int is_sync) {
        const char *path = getenv("MAINSTAY_TEST_DELAYS");
        int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        char text[64] = "", *end;
        long write_msec, sync_msec;

        if (fd < 0)
                return 0;
        (void) !read(fd, text, sizeof(text) - 1);
        (void) close(fd);
        write_msec = strtol(text, &end, 10);
        sync_msec = strtol(end, NULL, 10);
        return is_sync ? sync_msec : write_msec;
}

static void wait_for_disk(int fd, int is_sync) {
        const char *directory = getenv("MAINSTAY_TEST_SLOW");
        const struct timespec slice = { .tv_nsec = SLICE_MSEC * 1000000 };
        char name[64], target[4096];
        ssize_t n;

        (void) snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        n = readlink(name, target, sizeof(target) - 1);
        if (!directory || n < 0)
                return;
        target[n] = '\0';
        if (strncmp(target, directory, strlen(directory)) != 0)
                return;
        for (long passed = 0; passed < read_delay(is_sync); passed += SLICE_MSEC)
                (void) nanosleep(&slice, NULL);
}

ssize_t write(int fd, const void *buffer, size_t n) {
        wait_for_disk(fd, 0);
        return syscall(SYS_write, fd, buffer, n);
}

ssize_t writev(int fd, const struct iovec *vectors, int n) {
        wait_for_disk(fd, 0);
        return syscall(SYS_writev, fd, vectors, n);
}

int fsync(int fd) {
        wait_for_disk(fd, 1);
        return (int) syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
        wait_for_disk(fd, 1);
        return (int) syscall(SYS_fdatasync, fd);
}

int syncfs(int fd) {
        wait_for_disk(fd, 1);
        return (int) syscall(SYS_syncfs, fd);
}
