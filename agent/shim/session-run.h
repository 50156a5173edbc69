/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The process that copies between the WebSocket of a session and a command (session-command.h), or
 * a container to which it is attached. It has no privileges (shim-confine.h). */

#include "agent/shim/session-runtime.h"

/* The session's ends of the command's streams, and the socket to the process that runs the command.
 * Each is -EBADF if there is none. */
typedef struct SessionPipes {
        int input_fd;
        int output_fd;
        int error_fd;
        int link_fd;
} SessionPipes;

#define SESSION_PIPES_NULL ((SessionPipes){ -EBADF, -EBADF, -EBADF, -EBADF })

/* Returns when the session has ended; runs in a child of 'parent' that has dropped its privileges.
 * 0 or -errno. */
int session_copy(const SessionSpec *spec, const SessionPipes *pipes, pid_t parent);
