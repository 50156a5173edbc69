/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Connections to ports of a pod over the channels of one WebSocket, as clients before Kubernetes
 * 1.31 use it (v4.channel.k8s.io): the ports are those of the query, the n-th of them has channel
 * 2n for its data and 2n+1 for an error, and each channel starts with its port. */

#include "agent/node-api/http/stream-socket.h"

enum {
        PORT_CHANNELS_MAX = 32, /* ports; in base64 the number of a channel is one character */
};

/* The ports of a query. */
typedef struct ForwardedPorts {
        uint16_t numbers[PORT_CHANNELS_MAX];
        size_t n;
} ForwardedPorts;

/* Adds those of one parameter, "80" or "80,443". 0; -EINVAL; -E2BIG: they are too many. Pure. */
int forwarded_ports_add(ForwardedPorts *ports, const char *text);

/* The protocol for the reply to a handshake: the first of the client's that is supported, "" if it
 * offers none (NULL); else NULL. Pure. */
const char *port_channels_protocol(const char *offered);

typedef struct PortChannels PortChannels;

typedef struct PortChannelsSpec {
        sd_event *event;
        ForwardedPorts ports;
        bool is_base64;
        const char *pod; /* "name_namespace", for messages */
        const char *agent_socket;
        const char *credential; /* of the client, for the agent */
        const char *agent_path; /* of the request for a connection, up to the number of the port */
        unsigned *n_of_all;     /* borrowed: the connections of all clients are counted there */
        ClientStream client;
        void (*on_over)(void *userdata); /* once, from the loop; frees it */
        void *userdata;
} PortChannelsSpec;

/* The memory that 'spec' points to may be freed after the call. 0 or -errno. */
int port_channels_new(const PortChannelsSpec *spec, PortChannels **ret);

/* Without on_over(). */
PortChannels *port_channels_free(PortChannels *channels);
