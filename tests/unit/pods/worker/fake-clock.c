/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of the process, also for libsystemd: the event loop reads the time with
 * clock_gettime() and calls the timers that are due at this time. Timers that it arms in the kernel
 * are only recorded, to detect when nothing happens. */

#include "tests/unit/pods/worker/fakes.h"

#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* 2026-06-01T00:00:00Z */
#define STARTED_AT (UINT64_C(1780272000) * USEC_PER_SEC)

/* The event loop may call a timer later by this time, to save a wake-up. */
#define ACCURACY_USEC (300 * USEC_PER_MSEC)

enum {
        DESCRIPTORS_MAX = 1024
};

static uint64_t realtime = STARTED_AT, boottime = 1000 * USEC_PER_SEC, awake = 900 * USEC_PER_SEC;

static struct {
        clockid_t clock;
        uint64_t due_at; /* 0: it is not armed */
} timers[DESCRIPTORS_MAX];

static uint64_t read_clock(clockid_t clock) {
        if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_ALARM ||
            clock == CLOCK_REALTIME_COARSE)
                return realtime;
        return clock == CLOCK_BOOTTIME || clock == CLOCK_BOOTTIME_ALARM ? boottime : awake;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int clock_gettime(clockid_t clock, struct timespec *ret) {
        if (clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID)
                return (int) syscall(SYS_clock_gettime, clock, ret);
        ret->tv_sec = (time_t) (read_clock(clock) / USEC_PER_SEC);
        ret->tv_nsec = (long) (read_clock(clock) % USEC_PER_SEC * 1000);
        return 0;
}

#if __SIZEOF_LONG__ == 4
/* On 32 bits the agent's own code calls the function by this name. */
typedef struct LongTime {
        int64_t seconds;
        int32_t nanoseconds, padding;
} LongTime;

int get_long_time(clockid_t clock, LongTime *ret) __asm__("__clock_gettime64");
int get_long_time(clockid_t clock, LongTime *ret) {
        ret->seconds = (int64_t) (read_clock(clock) / USEC_PER_SEC);
        ret->nanoseconds = (int32_t) (read_clock(clock) % USEC_PER_SEC * 1000);
        return 0;
}
#endif

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int timerfd_create(clockid_t clock, int flags) {
        int fd = (int) syscall(SYS_timerfd_create, clock, flags);

        REQUIRE(fd < DESCRIPTORS_MAX);
        if (fd >= 0) {
                timers[fd].clock = clock;
                timers[fd].due_at = 0;
        }
        return fd;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old) {
        timers[fd].due_at = (uint64_t) value->it_value.tv_sec * USEC_PER_SEC +
                            (uint64_t) value->it_value.tv_nsec / 1000;
        return 0;
}

uint64_t fake_clock_quiet_usec(void) {
        uint64_t quiet = USEC_INFINITY;

        for (int fd = 0; fd < DESCRIPTORS_MAX; fd++) {
                uint64_t now = read_clock(timers[fd].clock) + ACCURACY_USEC;

                if (timers[fd].due_at + ACCURACY_USEC > now)
                        quiet = MIN(quiet, timers[fd].due_at > now ? timers[fd].due_at - now : 0);
        }
        return quiet;
}

void fake_clock_pass(uint64_t usec) {
        realtime += usec;
        boottime += usec;
        awake += usec;
}

void fake_clock_set(int64_t by_usec) {
        realtime += (uint64_t) by_usec;
}

void fake_clock_sleep(uint64_t usec) {
        realtime += usec;
        boottime += usec;
}
