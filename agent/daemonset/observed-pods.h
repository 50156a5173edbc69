/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pods of this node as the DaemonSet controller observes them when a pass starts: a snapshot
 * of pods and statuses. Pods are borrowed. */

#include "agent/model/pod.h"
#include "agent/model/status.h"

typedef struct ObservedPod {
        const Pod *pod;      /* from a pod worker, or an orphan */
        bool is_syncing;     /* see PodStatus */
        bool is_terminating; /* also true for a pod that the API server has bound to this node,
                              * which terminates as soon as this node places the set's pods */
        bool is_api_pod;
        bool is_ready;
        bool is_orphan;
        bool waits_for_node; /* evicted: the pod worker will start it again */
        PodPhase phase;
        uint64_t ready_stamp; /* realtime */
        uint64_t start_time;
} ObservedPod;

typedef struct ObservedPods {
        ObservedPod *items;
        size_t n;
        const Pod **peers; /* those that have not terminated, for pod affinity */
        size_t n_peers;
} ObservedPods;

/* 0 or -ENOMEM. */
int observed_pods_add(ObservedPods *observed, const Pod *pod, const PodStatus *status,
                      bool is_orphan);
void observed_pods_done(ObservedPods *observed);

/* Whether the controller of the pod is a DaemonSet with this UID. False for a pod that an API
 * server has bound to this node, because a user may have written its owner; see
 * daemonset_controls_pod(). */
bool local_pod_is_owned_by_uid(const Pod *pod, const char *uid);

/* Whether a local pod has this owner. */
bool observed_pods_have_owner(const ObservedPods *observed, const char *uid);
