/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The process of a session: between a WebSocket and a command that the runtime starts in a
 * container. For a task. */

#include "agent/shim/runtime.h"

typedef struct SessionSpec {
        Runtime runtime;
        char *directory; /* which it makes for files of the session, and removes */
        char *container; /* its ID */
        char **argv;
        int socket_fd;
        const char *refusal; /* why it cannot be, or NULL; then nothing else matters */
        bool has_input;
        bool has_output;
        bool has_error;
        bool has_terminal; /* standard error goes there too */
} SessionSpec;

/* Returns when the command has ended, or was killed because the client is gone. 0 or -errno. */
int session_run(const SessionSpec *spec);
