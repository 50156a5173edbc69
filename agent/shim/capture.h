/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The beginning of a program's output to a pipe. The rest is read, too, and dropped. */

#include "agent/shim/epoll-loop.h"

typedef struct Capture {
        EpollSource source; /* its descriptor is closed at the end of the pipe */
        int epoll_fd;
        size_t max;
        size_t length;
        char *text; /* with room for a NUL at the end; NULL: nothing */
} Capture;

/* Watches 'fd_consume', which does not block. 0 or -errno; capture_done() in either case. */
int capture_open(Capture *capture, int epoll_fd, int fd_consume, size_t max);

/* Reads the available bytes, up to a limit that leaves other sources their turn. */
void capture_read(Capture *capture);

/* The text, without NUL in it. */
const char *capture_text(Capture *capture);
const char *capture_last_line(Capture *capture);

void capture_done(Capture *capture);
