/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Preemption: which pods the node stops so that a critical pod fits (kubelet:
 * preemption.CriticalPodAdmissionHandler). Pure; pod-manager-preemption.c stops them, and also pods
 * that hold a name or port that a pod of higher trust needs. */

#include "agent/model/node-usage.h"
#include "agent/model/qos.h"

/* The kubelet's event and status for a preempted pod. */
#define PREEMPTION_REASON  "Preempting"
#define PREEMPTION_MESSAGE "Preempted in order to admit critical pod"
/* The message of its condition DisruptionTarget. */
#define PREEMPTION_DISRUPTION "Pod was preempted by Kubelet to accommodate a critical pod."

/* Status and event of a pod of lower trust (pod_source_outranks()) if another pod of this node has
 * its name or UID. */
#define NAME_CONFLICT_REASON  "NameConflict"
#define NAME_CONFLICT_MESSAGE "this node has a pod of its own of that name"
#define UID_CONFLICT_REASON   "UIDConflict"
#define UID_CONFLICT_MESSAGE  "this node has a pod of its own with that UID"

typedef struct PreemptionCandidate {
        QosClass qos;
        NodeUsage requests;
        bool is_chosen;
} PreemptionCandidate;

/* Whether the node may stop the pod 'victim' for 'pod': it must come from an API server, and either
 * be non-critical while 'pod' is critical, or have a lower priority. Pods of files are not stopped,
 * like static pods in the kubelet. */
bool pod_may_preempt(const Pod *pod, const Pod *victim);

/* Chooses candidates whose requests add up to the missing amounts, according to the kubelet's rule:
 * BestEffort pods come before Burstable ones, Burstable ones before Guaranteed ones, and in each
 * class as few and as small pods as possible are chosen. False: all of them together are not
 * sufficient; none is chosen, and 'ret_unmet' contains the amounts that would be missing even
 * without any of them. */
bool choose_pods_to_preempt(PreemptionCandidate *candidates, size_t n, const NodeUsage *missing,
                            NodeUsage *ret_unmet);

/* "[(res: cpu, q: 100), ]" as the kubelet prints it. The caller frees it; NULL: out of memory. */
char *format_missing_resources(const NodeUsage *missing);
