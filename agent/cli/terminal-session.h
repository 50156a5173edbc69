/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs a command in a container, or attaches to the container itself, with the streams connected to
 * local descriptors. */

#include "common/error.h"

#include <jansson.h>

typedef struct SessionStreams {
        int input_fd; /* each of them -EBADF if it is not connected */
        int output_fd;
        int error_fd;
        bool is_error_untrusted; /* written line by line, with control characters made visible */
        bool has_terminal; /* the command gets a terminal, with the size of the local one if there
                              is one */
} SessionStreams;

/* Runs the command to completion. 0 with its exit code; -EREMOTEIO or another -errno with a message
 * if it could not be run, or if the connection was lost. */
int session_exec(const char *socket, const json_t *pod, const char *container, char *const *argv,
                 const SessionStreams *streams, int *ret_exit_code, Error *reterr);

/* Attaches to the container itself, until it ends. 0 or -errno, as above. */
int session_attach(const char *socket, const json_t *pod, const char *container,
                   const SessionStreams *streams, Error *reterr);
