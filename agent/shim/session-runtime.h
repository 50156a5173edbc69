/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Starts the command of a session: "exec --detach" of the runtime, so that it becomes a child. */

#include "agent/shim/attachment-streams.h"
#include "agent/shim/runtime.h"

#include <sys/types.h>

/* A session: its container, its command or the container's own streams, its client. */
typedef struct SessionSpec {
        Runtime runtime;
        char *directory; /* created for files of the session, and removed at its end */
        char *container; /* its ID */
        char **argv;
        int socket_fd;
        const char *refusal; /* why the session is impossible, or NULL; if set, the other members
                              * are ignored */
        bool has_input;
        bool has_output;
        bool has_error;
        bool has_terminal; /* standard error is merged into it */
        bool is_held;      /* the command waits for the client's message CHANNEL_START */
        bool attaches;     /* attached to the container itself: no command is run, and the streams
                            * are: */
        AttachmentStreams streams;
} SessionSpec;

/* Starts the command with these as its first three descriptors (-EBADF: /dev/null), or with a
 * terminal whose master side is sent to the socket 'terminal'. Errors of the runtime are in
 * <directory>/runtime.log, the PID of the command in <directory>/pid. 0 or -errno. */
int session_start_runtime(const SessionSpec *spec, const char *terminal, const int fds[3],
                          pid_t *ret_pid);

/* The PID of the command, after the runtime has succeeded. 0 or -errno. */
int session_read_pid(const SessionSpec *spec, pid_t *ret);
