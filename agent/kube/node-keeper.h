/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps the Node of the API: registers it, again when somebody deletes it; tells its status when it
 * is another and every five minutes; and tells us what others write into it. */

#include "agent/kube/client.h"
#include "agent/model/node-status.h"
#include "agent/model/node.h"

enum {
        NODE_HEARTBEAT_SEC = 300,
};

typedef struct NodeKeeper NodeKeeper;

typedef struct NodeKeeperSpec {
        KubeClient *client;
        const char *name;
        bool registers; /* false: somebody else makes the Node, as registerNode has it */

        /* What this machine is now; asked whenever something is written. The facts are borrowed,
         * the status is ours. 0 or -errno: later. */
        int (*describe)(const NodeFacts **ret_own, NodeStatus *ret_status, void *userdata);
        /* The Node is there, or is another: what others have put onto it, its UID. Borrowed. NULL,
         * NULL: it is not there. */
        void (*on_node)(const NodeFacts *others, const char *uid, void *userdata);
        /* 'error' stands until it is NULL; 'status' of HTTP, 0 without an answer. */
        void (*on_trouble)(const char *error, unsigned status, void *userdata);
        void *userdata;
} NodeKeeperSpec;

/* Begins. Callbacks come from the loop; all but describe may be NULL. 0 or -errno. */
int node_keeper_new(sd_event *event, const NodeKeeperSpec *spec, NodeKeeper **ret);
NodeKeeper *node_keeper_free(NodeKeeper *keeper);
DEFINE_CLEANUP(NodeKeeper *, node_keeper_free)

/* The status may be another: told if so. */
void node_keeper_touch(NodeKeeper *keeper);

/* All is read again: what we know of the server is not to be trusted. */
void node_keeper_refresh(NodeKeeper *keeper);

/* Of the Node, or NULL. */
const char *node_keeper_uid(const NodeKeeper *keeper);
