/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Registers the Node, and registers it again if it was deleted; updates its status immediately when
 * it changes and every five minutes (the default of nodeStatusReportFrequency; that setting and
 * nodeStatusUpdateFrequency are ignored); and reports the labels and taints of other writers. */

#include "agent/kubeclient/kube-client.h"
#include "agent/model/event.h"
#include "agent/model/node-status.h"
#include "agent/model/node.h"

#include <stdio.h>

enum {
        NODE_HEARTBEAT_SEC = 300,
};

typedef struct NodeStatusUpdater NodeStatusUpdater;

typedef struct NodeStatusUpdaterSpec {
        KubeClient *client;
        const char *name;
        bool registers_node; /* false: somebody else creates the Node, as with registerNode: false
                              */

        /* The local Node, read for each request. Labels and taints are borrowed, the caller
         * releases the status. 0; or -errno, after which it is called again later. */
        int (*get_local_node)(const NodeLabelsTaints **ret_local, NodeStatus *ret_status,
                              void *userdata);
        /* The Node exists or has changed: its external labels and taints, and its UID; borrowed.
         * NULL, NULL: it does not exist. */
        void (*on_node)(const NodeLabelsTaints *external, const char *uid, void *userdata);
        /* An event of the Node, after the request that it concerns. */
        void (*on_event)(const PodEvent *event, void *userdata);
        /* 'error' is valid until the next call with NULL; 'status' is the HTTP status, 0 without a
         * response. */
        void (*on_error)(const char *error, unsigned status, void *userdata);
        void *userdata;
} NodeStatusUpdaterSpec;

/* Starts the updater. Callbacks are called from the loop; all except get_local_node may be NULL. 0
 * or -errno. */
int node_status_updater_new(sd_event *event, const NodeStatusUpdaterSpec *spec,
                            NodeStatusUpdater **ret);
NodeStatusUpdater *node_status_updater_free(NodeStatusUpdater *updater);
DEFINE_CLEANUP(NodeStatusUpdater *, node_status_updater_free)

/* The status may have changed; if so, it is reported. */
void node_status_updater_trigger(NodeStatusUpdater *updater);

/* Reads the Node again, because the known state of the server's object is unreliable. */
void node_status_updater_resync(NodeStatusUpdater *updater);

/* Prints the Node object and its next update for `mainstay debug dump`. */
void node_status_updater_dump(const NodeStatusUpdater *updater, FILE *out);
