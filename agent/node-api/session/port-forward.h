/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Connections to ports of a pod over one connection of a client, which speaks SPDY, plain or in the
 * messages of a WebSocket. Each connection has two streams: one for its data, one for an error. */

#include "agent/node-api/http/stream-socket.h"

typedef struct PortForward PortForward;

typedef struct PortForwardSpec {
        sd_event *event;
        bool is_tunnel;  /* in binary messages of a WebSocket */
        const char *pod; /* "name_namespace", for messages */
        const char *agent_socket;
        const char *credential; /* of the client, for the agent */
        const char *agent_path; /* of the request for a connection, up to the number of the port */
        unsigned *n_of_all;     /* borrowed: the connections of all clients are counted there */
        ClientStream client;
        void (*on_over)(void *userdata); /* once, from the loop; frees it */
        void *userdata;
} PortForwardSpec;

/* The memory that 'spec' points to may be freed after the call. 0 or -errno. */
int port_forward_new(const PortForwardSpec *spec, PortForward **ret);

/* Without on_over(). */
PortForward *port_forward_free(PortForward *forward);
DEFINE_CLEANUP(PortForward *, port_forward_free)

/* Part of the path that a client may upgrade to; the names in the handshakes. */
#define PORT_FORWARD_PROTOCOL        "portforward.k8s.io"
#define PORT_FORWARD_TUNNEL_PROTOCOL "SPDY/3.1+portforward.k8s.io"
