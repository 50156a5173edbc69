/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Captures the beginning of a program's output to a pipe. The rest is read and dropped. */

#include "agent/shim/epoll-loop.h"

typedef struct Capture {
        EpollSource source; /* its descriptor is closed at the end of the output */
        int epoll_fd;
        size_t max;
        size_t length;
        char *text; /* with room for a terminating NUL; NULL: nothing */
} Capture;

/* Watches 'fd_consume', which must be non-blocking. 0 or -errno; capture_done() in both cases. */
int capture_open(Capture *capture, int epoll_fd, int fd_consume, size_t max);

/* Reads the available bytes, up to a limit, so that other sources get their turn. */
void capture_read(Capture *capture);

/* The text; NUL bytes in it become '?'. */
const char *capture_text(Capture *capture);
const char *capture_last_line(Capture *capture);

void capture_done(Capture *capture);
