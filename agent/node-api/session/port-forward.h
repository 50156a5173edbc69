/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Connections to ports of a pod over one connection of a client, which speaks SPDY, directly or in
 * messages of a WebSocket. Each connection has two streams: one for data, one for errors. */

#include "agent/node-api/http/stream-socket.h"

typedef struct PortForward PortForward;

typedef struct PortForwardSpec {
        sd_event *event;
        bool is_tunnel;  /* in binary messages of a WebSocket */
        const char *pod; /* "name_namespace", for messages */
        const char *agent_socket;
        const char *credential; /* of the client, for the agent */
        const char *agent_path; /* path for requesting a connection, up to the port number */
        unsigned *n_of_all;     /* borrowed: counts the connections of all clients */
        ClientStream client;
        void (*on_over)(void *userdata); /* called once, from the loop; frees it */
        void *userdata;
} PortForwardSpec;

/* The memory that 'spec' points to may be freed after the call. 0 or -errno. */
int port_forward_new(const PortForwardSpec *spec, PortForward **ret);

/* Without on_over(). */
PortForward *port_forward_free(PortForward *forward);
DEFINE_CLEANUP(PortForward *, port_forward_free)

/* The last part of the path that a client may upgrade; the names in the handshakes. */
#define PORT_FORWARD_PROTOCOL        "portforward.k8s.io"
#define PORT_FORWARD_TUNNEL_PROTOCOL "SPDY/3.1+portforward.k8s.io"
