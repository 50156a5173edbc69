/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The resources of the node that pods request, and whether one more pod fits (kubelet: the
 * predicates of GeneralPredicates, InsufficientResourceError). Pure. */

#include "agent/model/node-status.h"
#include "agent/model/resource.h"

/* the number of pods comes last (maxPods, podsPerCore) */
enum {
        NODE_PODS = N_RESOURCE_TYPES,
        N_NODE_AMOUNTS,
};

/* CPU in thousandths, pods as a count, the others in bytes. */
typedef struct NodeUsage {
        int64_t amounts[N_NODE_AMOUNTS];
} NodeUsage;

/* The order in which the kubelet reports shortages. */
extern const unsigned node_amount_order[N_NODE_AMOUNTS];

/* The first amount in that order that is not 0; there must be one. */
unsigned node_usage_first(const NodeUsage *usage);

/* "pods", or the name of the resource. */
const char *node_amount_name(unsigned amount);

/* The requests of a pod: 0 for resources that it does not request. */
NodeUsage node_usage_of_pod(const PodSpec *spec);

void node_usage_add(NodeUsage *usage, const NodeUsage *more);

/* The resources of the node that are available to pods. */
NodeUsage node_usage_capacity(const NodeResources *allocatable);

/* The amounts that are missing for 'requested' in addition to 'used': 0 if there is enough. Returns
 * whether any is missing.
 */
bool node_usage_find_missing(const NodeUsage *capacity, const NodeUsage *used,
                             const NodeUsage *requested, NodeUsage *ret);
