/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One exec or attach session: a client's connection, and the shim's, which runs the command. The
 * shim is asked for when the client's streams are open. A side that does not read stops the other,
 * and no other session. */

#include "agent/node-api/session-wire.h"

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct Session Session;

typedef struct ClientSessionSpec {
        sd_event *event;
        const SessionProtocol *protocol;
        SessionOptions options;
        const char *agent_socket;
        const char *agent_path; /* of the request for the session, with its query */
        int fd;                 /* the client's connection: borrowed, non-blocking */
        const char *early;      /* bytes of the client that were read already */
        size_t early_length;
        uint64_t idle_usec; /* of the client's connection without a byte, then it ends; 0: never */
        void (*on_over)(void *userdata); /* once, from the loop; frees the session */
        void *userdata;
} ClientSessionSpec;

/* What 'spec' points to need not outlive the call. 0 or -errno. */
int session_new(const ClientSessionSpec *spec, Session **ret);

/* Without on_over(). */
Session *session_free(Session *session);
DEFINE_CLEANUP(Session *, session_free)
