/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A session in a container (CRI: Exec, Attach; kubectl exec): a command whose streams use a
 * WebSocket that the agent has accepted and handed over; or the container's own streams (kubectl
 * attach). It runs in a separate process (a task), so that it does not slow down the shim's loop
 * and does not end with the agent. */

#include "agent/sandbox/protocol.h"

typedef struct Shim Shim;

enum {
        SESSIONS_MAX = 32, /* per pod */
};

/* Starts the session of the request on the socket, and takes ownership of the socket. Errors are
 * reported through the socket. */
/* The request is SHIM_REQUEST_SESSION or SHIM_REQUEST_ATTACH. */
void session_begin(Shim *shim, const ShimRequest *request, int socket_fd_consume);
