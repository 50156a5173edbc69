/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The objects of a resource that the agent cannot watch, because it measures them on request:
 * listed immediately, and again every fifteen seconds, which is the resolution of
 * metrics-server. */

#include "agent/node-api/kubernetes/served-resources.h"

#include <systemd/sd-event.h>

typedef struct ObjectPoll ObjectPoll;

/* A list, as of served_objects_parse() and with labels; borrowed. NULL: the agent has failed, and
 * there is no further call. It may free the poll. */
typedef void (*object_poll_t)(const json_t *objects, void *userdata);

typedef struct ObjectPollSpec {
        sd_event *event;
        const char *agent_socket; /* borrowed, as 'resource' */
        const char *credential;   /* of the client, in the same way */
        const ServedResource *resource;
        size_t body_max; /* bytes of a reply of the agent */
        object_poll_t on_objects;
        void *userdata;
} ObjectPollSpec;

/* 0 or -errno. */
int object_poll_new(const ObjectPollSpec *spec, ObjectPoll **ret);
ObjectPoll *object_poll_free(ObjectPoll *poll);
