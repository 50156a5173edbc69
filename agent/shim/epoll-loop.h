/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The shim's event loop on epoll. It handles one event at a time, so that a handler may remove any
 * source (and free its owner) without leaving a stale event. The agent uses sd-event instead. */

#include "common/macros.h"

#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>

typedef struct EpollSource EpollSource;
typedef void (*epoll_source_ready_t)(EpollSource *source, uint32_t events);

/* A part of the object that owns it; container_of() finds the object. */
struct EpollSource {
        int fd; /* owned by the object, not by the loop */
        epoll_source_ready_t on_ready;
};

#define EPOLL_SOURCE_NULL ((EpollSource){ .fd = -EBADF })

#define container_of(ptr, type, member) ((type *) (void *) ((char *) (ptr) -offsetof(type, member)))

/* Watches source->fd for 'events' (EPOLLIN, EPOLLOUT; 0 for neither). 0 or -errno. */
int epoll_source_add(int epoll_fd, EpollSource *source, uint32_t events);
int epoll_source_change(int epoll_fd, EpollSource *source, uint32_t events);
void epoll_source_remove(int epoll_fd, EpollSource *source);

/* Waits for one event until 'deadline' (awake time; USEC_INFINITY: no deadline), and handles it. 0
 * or -errno. */
int epoll_loop_run_once(int epoll_fd, uint64_t deadline);
