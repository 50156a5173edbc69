/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Affinity between the pods of one node. A term asks for pods in the same domain, which is all
 * nodes with the same value of a label; this node knows its own pods only. So what is here counts,
 * and what would have to be elsewhere is not there. */

#include "agent/daemonset/rules/rules.h"

typedef struct PodAffinityMismatch {
        const char *rule; /* static */
        char *why;
} PodAffinityMismatch;

void pod_affinity_mismatch_done(PodAffinityMismatch *mismatch);

/* 1 with what keeps a pod of the set from starting beside these; 0 where nothing does; -ENOMEM. */
int pod_affinity_find_mismatch(const DaemonSet *set, const NodeLabelsTaints *node,
                               const NodePods *node_pods, PodAffinityMismatch *ret);
