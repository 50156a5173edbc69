/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The shim's side of its socket: one agent at a time, the last that came. Sending never waits: what
 * the agent does not read is queued, and when the queue is full the connection is closed; the next
 * one is told everything. */

#include "agent/sandbox/protocol.h"
#include "agent/shim/epoll-loop.h"

typedef struct AgentConnection AgentConnection;

struct AgentConnection {
        int epoll_fd;
        EpollSource listener;
        EpollSource peer;
        PacketQueue queue;
        int received_fd; /* with the request that is being handled; who wants it takes it */
        /* Called for each request. */
        void (*on_request)(AgentConnection *connection, const ShimRequest *request);
        /* Called when an agent has come: tell it all. */
        void (*on_connected)(AgentConnection *connection);
};

enum {
        QUEUE_BYTES_MAX = 512 * 1024,
};

/* Listens on 'listen_fd', which it owns from now on. 0 or -errno. */
int agent_connection_init(AgentConnection *connection, int epoll_fd, int listen_fd);

/* Tells the agent, if there is one. */
void agent_connection_send(AgentConnection *connection, const ShimEvent *event);

/* The first that a new agent hears, with a descriptor (< 0: none). */
void agent_connection_greet(AgentConnection *connection, const ShimEvent *event, int fd);

void agent_connection_done(AgentConnection *connection);
