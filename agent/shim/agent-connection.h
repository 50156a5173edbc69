/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The shim's side of its socket. Only the latest agent is connected. Sending never waits: data that
 * the agent does not read is queued. When the queue is full, the connection is closed; the next
 * agent gets the complete state. */

#include "agent/sandbox/protocol.h"
#include "agent/shim/epoll-loop.h"

typedef struct AgentConnection AgentConnection;

struct AgentConnection {
        int epoll_fd;
        EpollSource listener;
        EpollSource peer;
        PacketQueue queue;
        int received_fd; /* descriptor sent with the current request; the handler may take it */
        char *greeting;  /* first event for each agent; allocated in advance, so that it cannot
                          * fail */
        size_t greeting_length;
        uint64_t accept_at; /* by CLOCK_AWAKE, after a shortage of resources; USEC_INFINITY: agents
                             * are accepted now
                             */
        /* Called for each request. */
        void (*on_request)(AgentConnection *connection, const ShimRequest *request);
        /* Called when an agent has connected; must report the complete state. */
        void (*on_connected)(AgentConnection *connection);
};

enum {
        QUEUE_BYTES_MAX = 512 * 1024,
};

/* Listens on 'listen_fd', and takes ownership of it. 'greeting' is the first event for each agent.
 * 0 or -errno. */
int agent_connection_init(AgentConnection *connection, int epoll_fd, int listen_fd,
                          const ShimEvent *greeting);

/* Sends an event to the agent, if one is connected. If there is no memory for it, closes the
 * connection, because the agent would wait for the lost event. The agent connects again, and missed
 * events are reported again. */
void agent_connection_send(AgentConnection *connection, const ShimEvent *event);

/* Sends the greeting, with a descriptor (< 0: none). */
void agent_connection_greet(AgentConnection *connection, int fd);

/* Accepts agents again once 'accept_at' has been reached. */
void agent_connection_continue(AgentConnection *connection, uint64_t now_awake);

void agent_connection_done(AgentConnection *connection);
