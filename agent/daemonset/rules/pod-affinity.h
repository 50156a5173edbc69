/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pod affinity and anti-affinity among the pods of one node. A term refers to pods in the same
 * topology domain: all nodes with the same value of a label. Only this node's pods are known, so
 * pods on other nodes never match. */

#include "agent/daemonset/rules/rules.h"

typedef struct PodAffinityMismatch {
        const char *rule; /* static */
        char *why;
} PodAffinityMismatch;

void pod_affinity_mismatch_done(PodAffinityMismatch *mismatch);

/* 1 with the rule that prevents a pod of the set from starting next to these; 0: none; -ENOMEM. */
int pod_affinity_find_mismatch(const DaemonSet *set, const NodeLabelsTaints *node,
                               const NodePods *node_pods, PodAffinityMismatch *ret);
