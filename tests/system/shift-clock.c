/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into an agent, whose clocks are then shifted by the seconds in a file, so that a test
 * can set the clock of an agent without setting that of the machine, and can make hours pass. The
 * first number is the offset of realtime, the second one that of all other clocks, and the third
 * one is how long the machine has slept, which is added to boottime and not to monotonic time. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

typedef struct Offsets {
        long long realtime, others, slept;
} Offsets;

enum {
        DESCRIPTORS_MAX = 4096
};

static bool counts_sleep[DESCRIPTORS_MAX]; /* a timer by boottime */

static Offsets read_offsets(void) {
        const char *path = getenv("MAINSTAY_TEST_CLOCK");
        int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        Offsets offsets = { 0 };
        char text[64], *end;
        ssize_t n;

        if (fd < 0)
                return offsets;
        n = read(fd, text, sizeof(text) - 1);
        (void) close(fd);
        if (n <= 0)
                return offsets;
        text[n] = '\0';
        offsets.realtime = strtoll(text, &end, 10);
        offsets.others = strtoll(end, &end, 10);
        offsets.slept = strtoll(end, NULL, 10);
        return offsets;
}

static long long offset_of(bool is_boottime) {
        Offsets offsets = read_offsets();

        return offsets.others + (is_boottime ? offsets.slept : 0);
}

static long long shift_of(clockid_t clock) {
        switch (clock) {
        case CLOCK_REALTIME:
                return read_offsets().realtime;
        case CLOCK_PROCESS_CPUTIME_ID:
        case CLOCK_THREAD_CPUTIME_ID:
                return 0;
        default:
                return offset_of(clock == CLOCK_BOOTTIME);
        }
}

/* A timer that is cancelled when the clock is set becomes a watch of the directory of the file: it
 * is readable once the file is replaced, and not readable when it is armed again. */
static int arm_cancelled_timer(int fd) {
        const char *path = getenv("MAINSTAY_TEST_CLOCK");
        const char *slash = path ? strrchr(path, '/') : NULL;
        char name[64], target[64] = "", events[4096], directory[4096];
        int watch;

        (void) snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        if (readlink(name, target, sizeof(target) - 1) > 0 && strstr(target, "inotify")) {
                while (read(fd, events, sizeof(events)) > 0)
                        ;
                return 0;
        }
        watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (!slash || watch < 0)
                return -1;
        (void) snprintf(directory, sizeof(directory), "%.*s", (int) (slash - path), path);
        if (inotify_add_watch(watch, directory, IN_MOVED_TO) < 0 || dup3(watch, fd, O_CLOEXEC) < 0)
                return -1;
        return close(watch);
}

int timerfd_create(clockid_t clock, int flags) {
        int fd = (int) syscall(SYS_timerfd_create, clock, flags);

        if (fd >= 0 && fd < DESCRIPTORS_MAX)
                counts_sleep[fd] = clock == CLOCK_BOOTTIME;
        return fd;
}

/* No other timer uses realtime. */
#define DEFINE_CLOCKS(gettime, get_time, settime, seconds_t, timespec_t, itimer_t, sys_gettime, \
                      sys_settime)                                                              \
        int gettime(clockid_t clock, timespec_t *ts) {                                          \
                int r = (int) syscall(sys_gettime, clock, ts);                                  \
                                                                                                \
                if (r == 0)                                                                     \
                        ts->tv_sec += (seconds_t) shift_of(clock);                              \
                return r;                                                                       \
        }                                                                                       \
                                                                                                \
        seconds_t get_time(seconds_t *ret) {                                                    \
                timespec_t ts = { 0 };                                                          \
                                                                                                \
                (void) gettime(CLOCK_REALTIME, &ts);                                            \
                if (ret)                                                                        \
                        *ret = ts.tv_sec;                                                       \
                return ts.tv_sec;                                                               \
        }                                                                                       \
                                                                                                \
        int settime(int fd, int flags, const itimer_t *value, itimer_t *old) {                  \
                bool is_boottime = fd >= 0 && fd < DESCRIPTORS_MAX && counts_sleep[fd];         \
                long long others = flags & TFD_TIMER_ABSTIME ? offset_of(is_boottime) : 0;      \
                itimer_t shifted = *value;                                                      \
                                                                                                \
                if (flags & TFD_TIMER_CANCEL_ON_SET)                                            \
                        return arm_cancelled_timer(fd);                                         \
                if (others != 0 && shifted.it_value.tv_sec > 0) {                               \
                        shifted.it_value.tv_sec -= (seconds_t) others;                          \
                        if (shifted.it_value.tv_sec <= 0)                                       \
                                shifted.it_value = (timespec_t){ .tv_nsec = 1 };                \
                }                                                                               \
                return (int) syscall(sys_settime, fd, flags, &shifted, old);                    \
        }

DEFINE_CLOCKS(clock_gettime, time, timerfd_settime, time_t, struct timespec, struct itimerspec,
              SYS_clock_gettime, SYS_timerfd_settime)

#ifdef SYS_clock_gettime64
/* On 32-bit machines the agent, unlike the libraries, uses 64-bit times, and calls these. */
typedef struct Timespec64 {
        long long tv_sec;
        long tv_nsec, padding;
} Timespec64;

typedef struct Timer64 {
        Timespec64 it_interval, it_value;
} Timer64;

DEFINE_CLOCKS(__clock_gettime64, __time64, __timerfd_settime64, long long, Timespec64, Timer64,
              SYS_clock_gettime64, SYS_timerfd_settime64)
#endif
