/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Connections to ports of a pod over the channels of one WebSocket, as used by clients before
 * Kubernetes 1.31 (v4.channel.k8s.io): the ports are listed in the query; the n-th port has channel
 * 2n for data and channel 2n+1 for errors, and each channel starts with its port. */

#include "agent/node-api/http/stream-socket.h"

enum {
        PORT_CHANNELS_MAX = 32, /* ports; with base64, the number of a channel is one character */
};

/* The ports of a query. */
typedef struct ForwardedPorts {
        uint16_t numbers[PORT_CHANNELS_MAX];
        size_t n;
} ForwardedPorts;

/* Adds the ports of one parameter, "80" or "80,443". 0; -EINVAL; -E2BIG: too many. Pure. */
int forwarded_ports_add(ForwardedPorts *ports, const char *text);

/* Chooses the protocol for the reply to a handshake: the first one that the client offers and the
 * server supports; "" if it offers none ('offered' is NULL); otherwise NULL. Pure. */
const char *port_channels_protocol(const char *offered);

typedef struct PortChannels PortChannels;

typedef struct PortChannelsSpec {
        sd_event *event;
        ForwardedPorts ports;
        bool is_base64;
        const char *pod; /* "name_namespace", for messages */
        const char *agent_socket;
        const char *credential; /* of the client, for the agent */
        const char *agent_path; /* path for requesting a connection, up to the port number */
        unsigned *n_of_all;     /* borrowed: counts the connections of all clients */
        ClientStream client;
        void (*on_over)(void *userdata); /* called once, from the loop; frees it */
        void *userdata;
} PortChannelsSpec;

/* The memory that 'spec' points to may be freed after the call. 0 or -errno. */
int port_channels_new(const PortChannelsSpec *spec, PortChannels **ret);

/* Without on_over(). */
PortChannels *port_channels_free(PortChannels *channels);
