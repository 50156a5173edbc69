/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* This node at the API server: registers the Node, keeps its status with the condition Ready and
 * its Lease, and sends events of pods. */

#include "agent/apiserver/collected-node-status.h"
#include "agent/apiserver/connection-status.h"
#include "agent/model/event.h"

#include <stdio.h>

typedef struct NodeRegistration NodeRegistration;

typedef struct NodeRegistrationSpec {
        sd_event *event;
        const char *node_name;
        NodeStatusInputs inputs;
        ConnectionStatus *connection;
        /* Labels and taints that other writers have set; may be the same as before. */
        void (*on_external)(const NodeLabelsTaints *external, void *userdata);
        /* The Node was created or deleted; 'uid' is NULL if it does not exist. */
        void (*on_node_uid)(const char *uid, void *userdata);
        void (*on_event)(const PodEvent *event, void *userdata); /* an event of the node */
        /* The server's history is older than before, as after the restoration of a backup:
         * everything must be listed again. */
        void (*on_history_lost)(void *userdata);
        void *userdata;
} NodeRegistrationSpec;

int node_registration_new(const NodeRegistrationSpec *spec, NodeRegistration **ret);
NodeRegistration *node_registration_free(NodeRegistration *node);
int node_registration_start(NodeRegistration *node, KubeClient *client); /* 0 or -errno */

/* The node is Ready until it shuts down. */
void node_registration_set_shutting_down(NodeRegistration *node, bool is_shutting_down);

/* The status may have changed; if so, it is reported. */
void node_registration_update(NodeRegistration *node);

/* A v1.Event as JSON; dropped while there is no client. */
void node_registration_record_event(NodeRegistration *node, const char *json);
bool node_registration_accepts_events(const NodeRegistration *node);

/* Prints Node, Lease and events for `mainstay debug dump`. */
void node_registration_dump(const NodeRegistration *node, FILE *out);
