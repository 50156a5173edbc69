/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A person's session in a container: a command whose streams go over a WebSocket that the agent has
 * accepted and handed to us. It is a process of its own (a task), so that it costs the shim's loop
 * nothing, and does not end with the agent. */

#include "agent/sandbox/protocol.h"

typedef struct Shim Shim;

enum {
        SESSIONS_MAX = 32, /* of a pod */
};

/* Begins the session of the request on the socket, which it owns from now on. What goes wrong is
 * told on the socket. */
void session_begin(Shim *shim, const ShimRequest *request, int socket_fd_consume);
