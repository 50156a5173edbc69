/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The status of this Node, collected from the kernel and the agent whenever it is reported: node
 * info, capacity and allocatable resources, images, runtime handlers. What the machine does not
 * provide is empty. */

#include "agent/cni/config-directory.h"
#include "agent/image/image-store.h"
#include "agent/model/node-status.h"
#include "agent/model/node.h"
#include "agent/node/machine-info.h"

/* What the Node status is collected from. */
typedef struct NodeStatusInputs {
        /* Of this node itself; may change, see apiserver_node_changed(). */
        const NodeLabelsTaints *local;
        const NodeConditions *conditions; /* likewise */
        const EvictionPolicy *eviction;
        const char *hostname;
        const char *address; /* NULL: none */
        const MachineInfo *machine;
        const CniSettings *network; /* its 'not_ready' may change, likewise */
        int64_t storage;            /* bytes, where pods write to */
        int64_t max_pods;
        uint16_t node_api_port;               /* reported while something listens there */
        const NodeReservation *system, *kube; /* what is kept from pods */
        ImageStore *images;
        const StringMap *runtimes; /* by handler name; the default one is not in it */
        /* Of manifests that are fetched, and the report: with strings until the next turn. */
        NodeSources (*list_sources)(void *userdata);
        void *userdata;
} NodeStatusInputs;

/* 'not_ready_reason' is NULL if the node is ready, apart from its network; 'refused' are the
 * permissions that it lacks, or NULL. 0 or -ENOMEM; the caller ends it with node_status_done(). */
int collect_node_status(const NodeStatusInputs *inputs, const char *not_ready_reason,
                        const char *refused, NodeStatus *ret);
