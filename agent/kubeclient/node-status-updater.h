/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps the Node of the API: registers it, again when somebody deletes it; tells its status when it
 * is another and every five minutes; and tells us what others write into it. */

#include "agent/kubeclient/client.h"
#include "agent/model/node-status.h"
#include "agent/model/node.h"

enum {
        NODE_HEARTBEAT_SEC = 300,
};

typedef struct NodeStatusUpdater NodeStatusUpdater;

typedef struct NodeStatusUpdaterSpec {
        KubeClient *client;
        const char *name;
        bool registers_node; /* false: somebody else makes the Node, as registerNode has it */

        /* What this machine is now; asked whenever something is written. The facts are borrowed,
         * the status is ours. 0 or -errno: later. */
        int (*get_local_node)(const NodeLabelsTaints **ret_own, NodeStatus *ret_status,
                              void *userdata);
        /* The Node is there, or is another: what others have put onto it, its UID. Borrowed. NULL,
         * NULL: it is not there. */
        void (*on_node)(const NodeLabelsTaints *others, const char *uid, void *userdata);
        /* 'error' stands until it is NULL; 'status' of HTTP, 0 without an answer. */
        void (*on_error)(const char *error, unsigned status, void *userdata);
        void *userdata;
} NodeStatusUpdaterSpec;

/* Begins. Callbacks come from the loop; all but describe may be NULL. 0 or -errno. */
int node_status_updater_new(sd_event *event, const NodeStatusUpdaterSpec *spec,
                            NodeStatusUpdater **ret);
NodeStatusUpdater *node_status_updater_free(NodeStatusUpdater *updater);
DEFINE_CLEANUP(NodeStatusUpdater *, node_status_updater_free)

/* The status may be another: told if so. */
void node_status_updater_trigger(NodeStatusUpdater *updater);

/* All is read again: what we know of the server is not to be trusted. */
void node_status_updater_resync(NodeStatusUpdater *updater);

/* Of the Node, or NULL. */
const char *node_status_updater_node_uid(const NodeStatusUpdater *updater);
