/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The shim's side of its socket. One agent is connected at a time, the latest. Sending never waits:
 * what the agent does not read is queued. When the queue is full, the connection is closed; the
 * next agent gets the complete state. */

#include "agent/sandbox/protocol.h"
#include "agent/shim/epoll-loop.h"

typedef struct AgentConnection AgentConnection;

struct AgentConnection {
        int epoll_fd;
        EpollSource listener;
        EpollSource peer;
        PacketQueue queue;
        int received_fd; /* sent with the request being handled; the handler may take it */
        /* Called for each request. */
        void (*on_request)(AgentConnection *connection, const ShimRequest *request);
        /* Called when an agent has connected: report the complete state. */
        void (*on_connected)(AgentConnection *connection);
};

enum {
        QUEUE_BYTES_MAX = 512 * 1024,
};

/* Listens on 'listen_fd' and owns it from now on. 0 or -errno. */
int agent_connection_init(AgentConnection *connection, int epoll_fd, int listen_fd);

/* Sends an event to the agent, if one is connected. */
void agent_connection_send(AgentConnection *connection, const ShimEvent *event);

/* The first event for a new agent, with a descriptor (< 0: none). */
void agent_connection_greet(AgentConnection *connection, const ShimEvent *event, int fd);

void agent_connection_done(AgentConnection *connection);
