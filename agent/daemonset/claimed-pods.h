/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Claiming: which of the observed pods belong to one DaemonSet. A DaemonSet claims the pods that it
 * owns and adopts the orphan pods that its selector matches. Orphans are left behind by sets of
 * manifests, so a set of an API server, which a user of the cluster may have written, adopts none.
 * Pure functions. */

#include "agent/daemonset/observed-pods.h"
#include "agent/daemonset/rules/rolling-update.h"
#include "common/clock.h"

/* The time at which the pod of the current revision became ready. The timestamp of a pod is
 * realtime, which jumps when the machine's clock is set; 'since' is from the steady clock and does
 * not. */
typedef struct PodReadyTime {
        uint64_t stamp;
        uint64_t since;
} PodReadyTime;

/* The DaemonSet that claims pods. */
typedef struct PodClaim {
        const DaemonSet *set;
        const char *revision_hash; /* hash of the current revision */
        const SteadyClock *clock;
        PodReadyTime *current_ready; /* updated when the pod's timestamp changes */
        bool adopts_orphans;
} PodClaim;

/* The pods of a set: entry i of 'pods' and 'keep' belongs to entry i of 'observed'. */
typedef struct ClaimedPods {
        ObservedPod **observed; /* borrowed */
        DaemonSetPodState *pods;
        bool *keep;
        size_t n;
} ClaimedPods;

/* 0 or -ENOMEM. */
int claim_daemonset_pods(const PodClaim *claim, ObservedPods *observed, ClaimedPods *ret);
void claimed_pods_done(ClaimedPods *claimed);

/* The counts of a DaemonSet's status. */
typedef struct DaemonSetPodCounts {
        size_t n_current, n_updated, n_ready, n_available;
} DaemonSetPodCounts;

/* Counts like Kubernetes' controller: if a node has several pods, the oldest one counts. */
DaemonSetPodCounts count_claimed_pods(const DaemonSet *set, const ClaimedPods *claimed,
                                      uint64_t now);
