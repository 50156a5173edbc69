/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The messages between client and server: one packet in each direction. */

#include "common/error.h"

#include <stdint.h>

enum {
        LAUNCH_VERSION = 1,
        LAUNCH_PROGRAM_SIZE = 32,
        LAUNCH_STRINGS_MAX = 4 * 1024 * 1024, /* bytes of arguments and environment */
};

/* The descriptors that a request passes, in this order. */
enum {
        LAUNCH_FD_STRINGS, /* a file with the arguments and then the environment, each string
                            * terminated by NUL */
        LAUNCH_FD_MOUNTS,  /* the mount namespace in which the program runs */
        LAUNCH_FD_STREAMS, /* standard input, output and error */
        LAUNCH_FDS = LAUNCH_FD_STREAMS + 3
};

typedef struct LaunchRequest {
        uint32_t version;
        uint32_t n_arguments; /* number of arguments; argv[0] is the first one of them */
        char program[LAUNCH_PROGRAM_SIZE];
} LaunchRequest;

/* The result as waitid(2) reports it. */
typedef struct LaunchResult {
        int32_t code;
        int32_t status;
} LaunchResult;

/* A request received by a keeper. */
typedef struct Launch {
        LaunchRequest request;
        int fds[LAUNCH_FDS];
        char *strings;
        char **argv, **environment;
} Launch;

#define LAUNCH_NULL ((Launch){ .fds = { -EBADF, -EBADF, -EBADF, -EBADF, -EBADF } })

/* Sends the request; the descriptors are copied. 0 or -errno. */
int launch_request_send(int socket_fd, const LaunchRequest *request, const int fds[LAUNCH_FDS]);

/* Waits for a request and reads its strings. 0, -EBADMSG, another -errno. */
int launch_request_receive(int socket_fd, Launch *ret);
void launch_done(Launch *launch);
