/* SPDX-License-Identifier: Apache-2.0 */
#include "common/mhd-loop.h"

#include "common/clock.h"
#include "common/event-source.h"

#include <errno.h>
#include <sys/epoll.h>

enum {
        IDLE_TIMER_ACCURACY_USEC = 10000,
};

void mhd_loop_schedule_run(MhdLoop *loop) {
        (void) sd_event_source_set_enabled(loop->deferred_run, SD_EVENT_ONESHOT);
}

void mhd_loop_run(MhdLoop *loop) {
        MHD_UNSIGNED_LONG_LONG timeout_msec;

        (void) MHD_run(loop->mhd);
        (void) sd_event_source_set_enabled(loop->idle_timer, SD_EVENT_OFF);
        if (MHD_get_timeout(loop->mhd, &timeout_msec) != MHD_YES)
                return;
        if (timeout_msec == 0)
                mhd_loop_schedule_run(loop);
        else
                (void) event_timer_arm(loop->idle_timer, timeout_msec * USEC_PER_MSEC);
}

bool mhd_loop_add_connection(MhdLoop *loop, int fd_consume, const struct sockaddr *address,
                             socklen_t size) {
        if (MHD_add_connection(loop->mhd, fd_consume, address, size) != MHD_YES)
                return false;
        mhd_loop_run(loop);
        return true;
}

static int on_mhd_readable(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        mhd_loop_run(userdata);
        return 0;
}

static int on_mhd_deferred_run(sd_event_source *source, void *userdata) {
        MhdLoop *loop = userdata;

        if (loop->on_deferred_run)
                loop->on_deferred_run(loop->userdata);
        mhd_loop_run(loop);
        return 0;
}

static int on_mhd_idle_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        mhd_loop_run(userdata);
        return 0;
}

int mhd_loop_start(MhdLoop *loop, sd_event *event, struct MHD_Daemon *mhd_take) {
        int fd, r;

        loop->mhd = mhd_take;
        if (!loop->mhd)
                return -EIO;
        fd = MHD_get_daemon_info(loop->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
        r = sd_event_add_io(event, &loop->readable, fd, EPOLLIN, on_mhd_readable, loop);
        if (r < 0)
                return r;
        r = sd_event_source_set_priority(loop->readable, loop->priority);
        if (r < 0)
                return r;
        r = event_add_disabled_defer(event, &loop->deferred_run, loop->priority,
                                     on_mhd_deferred_run, loop);
        if (r < 0)
                return r;
        return event_add_disabled_timer(event, &loop->idle_timer, CLOCK_MONOTONIC,
                                        IDLE_TIMER_ACCURACY_USEC, on_mhd_idle_timer, loop);
}

void mhd_loop_stop(MhdLoop *loop) {
        if (loop->mhd)
                MHD_stop_daemon(loop->mhd);
        loop->mhd = NULL;
        loop->readable = sd_event_source_disable_unref(loop->readable);
        loop->deferred_run = sd_event_source_disable_unref(loop->deferred_run);
        loop->idle_timer = sd_event_source_disable_unref(loop->idle_timer);
}

size_t mhd_unescape_path(void *userdata, struct MHD_Connection *http, char *text) {
        size_t length = MHD_http_unescape(text);

        for (size_t i = 0; i < length; i++)
                if (text[i] == '\0')
                        text[i] = '?';
        return length;
}
