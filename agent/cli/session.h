/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A command in a container, its streams connected with descriptors of ours. */

#include "common/error.h"

#include <jansson.h>

typedef struct SessionStreams {
        int input_fd; /* each -EBADF where it is not wanted */
        int output_fd;
        int error_fd;
        bool has_terminal; /* the command gets a terminal, of the size of ours where that is one */
} SessionStreams;

/* Runs it to its end. 0 with its exit code; -EREMOTEIO and others with a sentence where it could
 * not be run, or the session broke off. */
int session_attach(const char *socket, const json_t *pod, const char *container, char *const *argv,
                   const SessionStreams *streams, int *ret_exit_code, Error *reterr);
