/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clock-watch.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
        STEP_SEC = 60,
        /* Limits the reports if two services keep setting the clock to different times. */
        REPORTS_INTERVAL_SEC = 10,
        REPORTS_MAX = 3,
};

struct ClockWatch {
        void (*on_set)(void *userdata);
        void *userdata;
        sd_event_source *source;
        uint64_t reported; /* the offset */
};

bool clock_step_matters(uint64_t reported_offset, uint64_t offset) {
        uint64_t forward = offset - reported_offset, back = reported_offset - offset;

        return MIN(forward, back) >= STEP_SEC * USEC_PER_SEC;
}

static uint64_t read_clock_offset(void) {
        return now_realtime_usec() - now_boottime_usec();
}

/* The timer is set to the end of time, because only the setting of the clock matters. */
static int arm_clock_timer(int fd) {
        static const struct itimerspec never = {
                .it_value.tv_sec = (time_t) (sizeof(time_t) < 8 ? INT32_MAX : INT64_MAX)
        };

        return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) < 0
                       ? -errno
                       : 0;
}

/* The read fails with ECANCELED if the clock was set; armed again, the timer reports the next
 * setting. */
static int on_clock_timer(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        ClockWatch *watch = userdata;
        uint64_t expirations, offset;

        (void) !read(fd, &expirations, sizeof(expirations));
        if (arm_clock_timer(fd) < 0)
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        offset = read_clock_offset();
        if (!clock_step_matters(watch->reported, offset))
                return 0;
        watch->reported = offset;
        watch->on_set(watch->userdata);
        return 0;
}

static int add_clock_timer(ClockWatch *watch, sd_event *event) {
        cleanup_close int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        int r;

        if (fd < 0)
                return -errno;
        r = arm_clock_timer(fd);
        if (r < 0)
                return r;
        r = sd_event_add_io(event, &watch->source, fd, EPOLLIN, on_clock_timer, watch);
        if (r < 0)
                return r;
        r = sd_event_source_set_io_fd_own(watch->source, true);
        if (r < 0)
                return r;
        TAKE_FD(fd);
        r = sd_event_source_set_ratelimit(watch->source, REPORTS_INTERVAL_SEC * USEC_PER_SEC,
                                          REPORTS_MAX);
        return r < 0 ? r : sd_event_source_set_description(watch->source, "clock");
}

int clock_watch_new(sd_event *event, void (*on_set)(void *userdata), void *userdata,
                    ClockWatch **ret) {
        cleanup_with(clock_watch_freep) ClockWatch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return -ENOMEM;
        watch->on_set = on_set;
        watch->userdata = userdata;
        r = add_clock_timer(watch, event);
        if (r < 0)
                return r;
        watch->reported = read_clock_offset();
        *ret = TAKE_PTR(watch);
        return 0;
}

ClockWatch *clock_watch_free(ClockWatch *watch) {
        if (!watch)
                return NULL;
        sd_event_source_disable_unref(watch->source);
        free(watch);
        return NULL;
}
