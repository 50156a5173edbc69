/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into the emulator, whose real-time clock is then ahead by the seconds in a file: hours
 * pass for a machine that sleeps. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

int gettimeofday(struct timeval *now, void *zone) {
        int r = (int) syscall(SYS_gettimeofday, now, zone);
        const char *path = getenv("MAINSTAY_TEST_RTC");
        int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        char text[32];
        ssize_t n;

        if (fd < 0)
                return r;
        n = read(fd, text, sizeof(text) - 1);
        (void) close(fd);
        if (n > 0) {
                text[n] = '\0';
                now->tv_sec += strtol(text, NULL, 10);
        }
        return r;
}
