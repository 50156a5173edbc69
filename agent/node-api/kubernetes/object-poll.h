/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The objects of a resource that the agent cannot watch, because it measures them on request. They
 * are listed immediately, and then every fifteen seconds, as metrics-server does. */

#include "agent/node-api/kubernetes/served-resources.h"

#include <systemd/sd-event.h>

typedef struct ObjectPoll ObjectPoll;

/* Called with a list, from served_objects_parse() and with labels; borrowed. NULL: the agent has
 * failed, and no further call follows. It may free the poll. */
typedef void (*object_poll_t)(const json_t *objects, void *userdata);

typedef struct ObjectPollSpec {
        sd_event *event;
        const char *agent_socket; /* borrowed, like 'resource' */
        const char *credential;   /* credential of the client, also borrowed */
        const ServedResource *resource;
        size_t body_max; /* limit of a reply from the agent, in bytes */
        object_poll_t on_objects;
        void *userdata;
} ObjectPollSpec;

/* 0 or -errno. */
int object_poll_new(const ObjectPollSpec *spec, ObjectPoll **ret);
ObjectPoll *object_poll_free(ObjectPoll *poll);
