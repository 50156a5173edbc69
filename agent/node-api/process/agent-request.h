/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A request to the agent on its local socket, from the event loop. The agent is trusted, but its
 * replies are limited as well. */

#include "common/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

enum {
        AGENT_HEAD_MAX = 16 * 1024,
        AGENT_BODY_MAX = 1024 * 1024, /* of a collected reply */
};

typedef enum AgentRequestKind {
        AGENT_COLLECT,    /* the whole reply */
        AGENT_STREAM,     /* the head of the reply, and a socket for the rest */
        AGENT_WEBSOCKET,  /* the socket, upgraded to a WebSocket session, which has not been read
                           * yet */
        AGENT_DESCRIPTOR, /* a descriptor passed by the agent */
} AgentRequestKind;

/* The reply, or the reason why there is none. Valid during the callback. */
typedef struct AgentReply {
        int error;                /* -errno: there is no reply */
        unsigned status;          /* of HTTP */
        const char *content_type; /* "" if there is none */
        const char *body; /* NUL-terminated: the whole body, or the data that arrived with the head
                           * of a stream; for an error, its message without the newline */
        size_t length;
        int fd; /* for the kinds that have one, if status is 200 or 101: the callback owns it */
} AgentReply;

typedef void (*agent_reply_t)(const AgentReply *reply, void *userdata);

typedef struct AgentRequestSpec {
        const char *socket_path;
        AgentRequestKind kind;
        const char *method;     /* NULL: GET */
        const char *path;       /* with its query, escaped */
        const char *credential; /* headers: the credential of the client; NULL: mainstay-api's own
                                 * request */
        size_t body_max;        /* limit of a reply; 0: AGENT_BODY_MAX */
        /* If the agent is restarting, waits for it for a few seconds: the request is sent again as
         * long as no agent has received all of it. */
        bool waits_for_agent;
        /* The request is also sent again if an agent ended before it had replied, or replied with
         * 503 that it is not ready. Used with AGENT_COLLECT. */
        bool changes_nothing;
} AgentRequestSpec;

typedef struct AgentRequest AgentRequest;

/* Starts a request; the memory that 'spec' points to may be freed after the call. 'on_reply' is
 * called once, from the loop; the request is freed afterwards. 0 or -errno. */
int agent_request_start(sd_event *event, const AgentRequestSpec *spec, agent_reply_t on_reply,
                        void *userdata, AgentRequest **ret);

/* Cancels it without a callback. NULL is allowed; returns NULL. */
AgentRequest *agent_request_cancel(AgentRequest *request);
