/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The shim's side of its socket. One agent is connected at a time, the latest. Sending never waits:
 * data that the agent does not read is queued. When the queue is full, the connection is closed;
 * the next agent gets the complete state. */

#include "agent/sandbox/protocol.h"
#include "agent/shim/epoll-loop.h"

typedef struct AgentConnection AgentConnection;

struct AgentConnection {
        int epoll_fd;
        EpollSource listener;
        EpollSource peer;
        PacketQueue queue;
        int received_fd; /* sent with the request being handled; the handler may take it */
        char *greeting;  /* the first event for each agent: it needs no memory */
        size_t greeting_length;
        uint64_t accept_at; /* by CLOCK_AWAKE, after a shortage; USEC_INFINITY: agents are accepted
                             */
        /* Called for each request. */
        void (*on_request)(AgentConnection *connection, const ShimRequest *request);
        /* Called when an agent has connected: report the complete state. */
        void (*on_connected)(AgentConnection *connection);
};

enum {
        QUEUE_BYTES_MAX = 512 * 1024,
};

/* Listens on 'listen_fd' and owns it from now on. 'greeting' is the first event for each agent. 0
 * or -errno. */
int agent_connection_init(AgentConnection *connection, int epoll_fd, int listen_fd,
                          const ShimEvent *greeting);

/* Sends an event to the agent, if one is connected. If there is no memory for it, the connection is
 * closed: the agent would wait for an event that is lost. The agent connects again, and missed
 * events are reported again. */
void agent_connection_send(AgentConnection *connection, const ShimEvent *event);

/* Sends the greeting, with a descriptor (< 0: none). */
void agent_connection_greet(AgentConnection *connection, int fd);

/* Accepts agents again once 'accept_at' has come. */
void agent_connection_continue(AgentConnection *connection, uint64_t now_awake);

void agent_connection_done(AgentConnection *connection);
