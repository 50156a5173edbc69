/* SPDX-License-Identifier: Apache-2.0 */

/* Claimed pods and their counts; see the header. */

#include "agent/daemonset/claimed-pods.h"

#include "agent/daemonset/rules/rules.h"
#include "agent/model/object-identity.h"
#include "common/cleanup.h"

#include <errno.h>
#include <stdlib.h>

void claimed_pods_done(ClaimedPods *claimed) {
        free(claimed->observed);
        free(claimed->pods);
        free(claimed->keep);
        *claimed = (ClaimedPods){ 0 };
}

static bool can_claim_pod(const PodClaim *claim, const ObservedPod *observed) {
        const ObjectIdentity set = object_identity(&claim->set->metadata);

        /* The selector changes only if the set has no pods, or while no agent is running. */
        if (object_controller(&observed->pod->metadata))
                return pod_is_of_api(observed->pod)
                               ? daemonset_controls_pod(claim->set, observed->pod)
                               : object_is_controlled_by_daemonset(&observed->pod->metadata, &set);
        return claim->adopts_orphans && observed->is_orphan && !observed->is_terminating &&
               observed->pod->metadata.source == claim->set->metadata.source &&
               daemonset_selects_pod(claim->set, observed->pod);
}

static uint64_t find_pod_ready_since(const PodClaim *claim, const ObservedPod *observed,
                                     bool is_current) {
        uint64_t since;

        if (!observed->is_ready)
                return 0;
        if (is_current && observed->ready_stamp == claim->current_ready->stamp)
                return claim->current_ready->since;
        since = steady_from_realtime_usec(claim->clock, observed->ready_stamp);
        if (is_current)
                *claim->current_ready = (PodReadyTime){ observed->ready_stamp, since };
        return since;
}

static DaemonSetPodState make_pod_state(const PodClaim *claim, const ObservedPod *observed) {
        const StringMap *labels = &observed->pod->metadata.labels;
        bool is_current =
                streq_ptr(string_map_get(labels, revision_hash_label), claim->revision_hash);
        bool has_ended = observed->phase == POD_FAILED || observed->phase == POD_SUCCEEDED;

        return (DaemonSetPodState){
                .is_current = is_current,
                .is_terminating = observed->is_terminating,
                .is_syncing = observed->is_syncing,
                .is_terminal = has_ended && !observed->waits_for_node,
                .is_ready = observed->is_ready,
                .ready_since = find_pod_ready_since(claim, observed, is_current),
                .start_time = observed->start_time,
        };
}

int claim_daemonset_pods(const PodClaim *claim, ObservedPods *observed, ClaimedPods *ret) {
        cleanup_with(claimed_pods_done) ClaimedPods claimed = { 0 };

        claimed.observed = calloc(observed->n + 1, sizeof(*claimed.observed));
        claimed.pods = calloc(observed->n + 1, sizeof(*claimed.pods));
        claimed.keep = calloc(observed->n + 1, sizeof(*claimed.keep));
        if (!claimed.observed || !claimed.pods || !claimed.keep)
                return -ENOMEM;
        for (size_t i = 0; i < observed->n; i++) {
                if (!can_claim_pod(claim, &observed->items[i]))
                        continue;
                claimed.observed[claimed.n] = &observed->items[i];
                claimed.pods[claimed.n++] = make_pod_state(claim, &observed->items[i]);
        }
        *ret = claimed;
        claimed = (ClaimedPods){ 0 };
        return 0;
}

DaemonSetPodCounts count_claimed_pods(const DaemonSet *set, const ClaimedPods *claimed,
                                      uint64_t now) {
        uint64_t min_ready_usec = (uint64_t) set->spec.min_ready_seconds.value * USEC_PER_SEC;
        const DaemonSetPodState *oldest = NULL;
        DaemonSetPodCounts counts = { 0 };

        for (size_t i = 0; i < claimed->n; i++) {
                const DaemonSetPodState *pod = &claimed->pods[i];

                if (pod->is_terminating)
                        continue;
                counts.n_current++;
                if (!oldest || pod->start_time < oldest->start_time)
                        oldest = pod;
        }
        if (!oldest)
                return counts;
        counts.n_updated = oldest->is_current;
        counts.n_ready = oldest->is_ready;
        counts.n_available = oldest->is_ready && now >= oldest->ready_since + min_ready_usec;
        return counts;
}
