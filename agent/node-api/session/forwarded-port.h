/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One connection to a port of a pod: requested from the agent, then a socket, whose bytes do not
 * pass through the agent. Data that the client sends before it is connected is queued. */

#include "agent/node-api/http/stream-socket.h"

#include <stdint.h>

enum {
        FORWARDED_PORTS_MAX = 2048, /* for all clients: each port has up to two descriptors */
};

typedef struct ForwardedPort ForwardedPort;

/* Called from the loop. They may call the functions below, but must not free the port. */
typedef struct ForwardedPortHandlers {
        void (*on_data)(ForwardedPort *port, const char *data, size_t length, void *userdata);
        void (*on_end)(ForwardedPort *port, void *userdata); /* the pod sends nothing more */
        void (*on_written)(ForwardedPort *port, void *userdata);
        /* The connection has failed; 'message' contains the reason if it was never established,
         * otherwise NULL. */
        void (*on_failed)(ForwardedPort *port, const char *message, void *userdata);
} ForwardedPortHandlers;

/* 'credential' is the client's. 'handlers' and 'userdata' are borrowed. 0 or -errno.
 */
int forwarded_port_new(sd_event *event, const char *agent_socket, const char *agent_path,
                       const char *credential, const ForwardedPortHandlers *handlers,
                       void *userdata, ForwardedPort **ret);
ForwardedPort *forwarded_port_free(ForwardedPort *port);

/* Queues data for the pod. 0; -ENOBUFS, -ENOMEM. */
int forwarded_port_send(ForwardedPort *port, const void *data, size_t length);

/* Nothing more will be sent. */
void forwarded_port_end(ForwardedPort *port);

bool forwarded_port_is_empty(const ForwardedPort *port); /* everything was written */
bool forwarded_port_is_full(const ForwardedPort *port);
void forwarded_port_pause_reading(ForwardedPort *port, bool is_paused);
