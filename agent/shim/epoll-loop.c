/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/epoll-loop.h"

#include "common/clock.h"

#include <limits.h>

int epoll_source_add(int epoll_fd, EpollSource *source, uint32_t events) {
        struct epoll_event event = { .events = events, .data.ptr = source };

        return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0 ? -errno : 0;
}

int epoll_source_change(int epoll_fd, EpollSource *source, uint32_t events) {
        struct epoll_event event = { .events = events, .data.ptr = source };

        return epoll_ctl(epoll_fd, EPOLL_CTL_MOD, source->fd, &event) < 0 ? -errno : 0;
}

void epoll_source_remove(int epoll_fd, EpollSource *source) {
        if (source->fd >= 0)
                (void) epoll_ctl(epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
}

static int timeout_ms(uint64_t deadline) {
        uint64_t now, wait_usec;

        if (deadline == USEC_INFINITY)
                return -1;
        now = now_awake_usec();
        wait_usec = deadline > now ? deadline - now : 0;
        /* Rounded up: waking early would make the loop spin until the time is reached. */
        return (int) MIN(wait_usec / USEC_PER_MSEC + (wait_usec > 0), (uint64_t) INT_MAX);
}

int epoll_loop_run_once(int epoll_fd, uint64_t deadline) {
        struct epoll_event event;
        int n = epoll_wait(epoll_fd, &event, 1, timeout_ms(deadline));

        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        if (n > 0) {
                EpollSource *source = event.data.ptr;
                source->on_ready(source, event.events);
        }
        return 0;
}
