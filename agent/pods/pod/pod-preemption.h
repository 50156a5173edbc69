/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Preemption: which pods the node stops so that a critical pod fits (kubelet:
 * preemption.CriticalPodAdmissionHandler). Pure; pod-manager-preemption.c stops them, and pods that
 * hold something that a pod of higher trust needs. */

#include "agent/model/node-usage.h"
#include "agent/model/qos.h"

/* The kubelet's event and status of a pod that is preempted. */
#define PREEMPTION_REASON  "Preempting"
#define PREEMPTION_MESSAGE "Preempted in order to admit critical pod"
/* The message of its condition DisruptionTarget. */
#define PREEMPTION_DISRUPTION "Pod was preempted by Kubelet to accommodate a critical pod."

/* Status and event of a pod of lower trust (pod_source_outranks()) whose name, or UID, a pod of
 * this node's own has. */
#define NAME_CONFLICT_REASON  "NameConflict"
#define NAME_CONFLICT_MESSAGE "this node has a pod of its own of that name"
#define UID_CONFLICT_REASON   "UIDConflict"
#define UID_CONFLICT_MESSAGE  "this node has a pod of its own with that UID"

typedef struct PreemptionCandidate {
        QosClass qos;
        NodeUsage requests;
        bool is_chosen;
} PreemptionCandidate;

/* Whether the node may stop the pod 'victim' for 'pod': it is one of an API server, and either not
 * critical, as 'pod' is, or of a lower priority. Pods of files stay, as static pods do. */
bool pod_may_preempt(const Pod *pod, const Pod *victim);

/* Chooses candidates whose requests add up to the missing amounts, by the kubelet's rule:
 * BestEffort pods before Burstable ones, these before Guaranteed ones, and of each class as few and
 * as small ones as possible. False: all of them together are not enough; none is chosen, and
 * 'ret_unmet' contains the amounts that are missing without all of them. */
bool choose_pods_to_preempt(PreemptionCandidate *candidates, size_t n, const NodeUsage *missing,
                            NodeUsage *ret_unmet);

/* "[(res: cpu, q: 100), ]" as the kubelet prints it, in memory that the caller frees, or NULL. */
char *format_missing_resources(const NodeUsage *missing);
