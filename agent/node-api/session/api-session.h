/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One exec or attach session: the connection of a client, and the connection of the shim, which
 * runs the command. The shim is connected when the client's streams are open, or holds the command
 * until then. If one side does not read, the other side is paused, but no other session. */

#include "agent/node-api/http/stream-socket.h"
#include "agent/node-api/wire/session-wire.h"

typedef struct Session Session;

typedef struct ClientSessionSpec {
        sd_event *event;
        const SessionProtocol *protocol;
        SessionOptions options;
        const char *agent_socket;
        const char *credential; /* of the client, for the agent */
        const char *agent_path; /* path for requesting the session, with its query */
        int shim_fd; /* connection to the shim, which holds the command; owned by the session from
                      * now on. -EBADF: one is requested from the agent */
        ClientStream client;
        void (*on_over)(void *userdata); /* called once, from the loop; frees the session */
        void *userdata;
} ClientSessionSpec;

/* The memory that 'spec' points to may be freed after the call. 0 or -errno. */
int session_new(const ClientSessionSpec *spec, Session **ret);

/* Without on_over(). */
Session *session_free(Session *session);
DEFINE_CLEANUP(Session *, session_free)
