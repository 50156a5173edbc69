/* SPDX-License-Identifier: Apache-2.0 */

/* What pods there are, and whose. */

#include "agent/daemonset/controller-private.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <stdlib.h>

const char revision_hash_label[] = "controller-revision-hash";

static int observe_pod(const Pod *pod, const PodStatus *status, void *userdata) {
        DaemonSetController *controller = userdata;
        const PodCondition *ready = &status->conditions[CONDITION_READY];
        size_t n = controller->n_observed;
        ObservedPod *observed = reallocarray(controller->observed, n + 1, sizeof(*observed));
        const Pod **peers;

        if (!observed)
                return -ENOMEM;
        controller->observed = observed;
        peers = reallocarray(controller->peers, n + 1, sizeof(*peers));
        if (!peers)
                return -ENOMEM;
        controller->peers = peers;
        peers[n] = pod;
        observed[n] = (ObservedPod){
                .pod = pod,
                .is_syncing = status->is_syncing,
                .is_terminating = status->deletion_time > 0 || pod_is_of_api(pod),
                .is_api_pod = pod_is_of_api(pod),
                .is_ready = ready->is_true,
                .is_orphan = daemonset_controller_has_orphan(controller, pod),
                .waits_for_node = pod_status_waits_for_node(status),
                .phase = status->phase,
                .ready_stamp = ready->last_transition,
                .start_time = status->start_time,
        };
        controller->n_observed++;
        return 0;
}

int daemonset_controller_observe_pods(DaemonSetController *controller) {
        daemonset_controller_clear_observed(controller);
        return pod_manager_for_each_pod(controller->config.pod_manager, observe_pod, controller);
}

void daemonset_controller_clear_observed(DaemonSetController *controller) {
        free(controller->observed);
        free(controller->peers);
        controller->observed = NULL;
        controller->peers = NULL;
        controller->n_observed = 0;
}

void claimed_pods_done(ClaimedPods *claimed) {
        free(claimed->observed);
        free(claimed->pods);
        free(claimed->keep);
        *claimed = (ClaimedPods){ 0 };
}

/* Its own, or one that nobody owns any more. */
static bool is_claimed_by(const DaemonSetState *state, const ObservedPod *observed) {
        const OwnerReference *owner = object_controller(&observed->pod->metadata);

        if (owner)
                return streq(owner->uid, state->uid);
        return observed->is_orphan && !observed->is_terminating &&
               daemonset_selects_pod(state->set, observed->pod);
}

/* The stamp of a pod stands on the machine's clock, which may be set; what is counted from it does
 * not move with that. */
static uint64_t pod_ready_since(const DaemonSetController *controller, DaemonSetState *state,
                                const ObservedPod *observed, bool is_current) {
        uint64_t since;

        if (!observed->is_ready)
                return 0;
        if (is_current && observed->ready_stamp == state->ready_stamp)
                return state->ready_since;
        since = steady_from_realtime_usec(controller->config.clock, observed->ready_stamp);
        if (is_current) {
                state->ready_stamp = observed->ready_stamp;
                state->ready_since = since;
        }
        return since;
}

int daemonset_state_claim_pods(const DaemonSetController *controller, DaemonSetState *state,
                               ClaimedPods *ret) {
        const char *hash = daemonset_history_desired(&state->history);
        cleanup_with(claimed_pods_done) ClaimedPods claimed = { 0 };

        claimed.observed = calloc(controller->n_observed + 1, sizeof(*claimed.observed));
        claimed.pods = calloc(controller->n_observed + 1, sizeof(*claimed.pods));
        claimed.keep = calloc(controller->n_observed + 1, sizeof(*claimed.keep));
        if (!claimed.observed || !claimed.pods || !claimed.keep)
                return -ENOMEM;
        for (size_t i = 0; i < controller->n_observed; i++) {
                ObservedPod *observed = &controller->observed[i];
                const StringMap *labels = &observed->pod->metadata.labels;
                bool is_current = streq_ptr(string_map_get(labels, revision_hash_label), hash);

                if (!is_claimed_by(state, observed))
                        continue;
                claimed.observed[claimed.n] = observed;
                claimed.pods[claimed.n++] = (DaemonSetPodState){
                        .is_current = is_current,
                        .is_terminating = observed->is_terminating,
                        .is_syncing = observed->is_syncing,
                        .is_terminal =
                                !observed->waits_for_node &&
                                (observed->phase == POD_FAILED || observed->phase == POD_SUCCEEDED),
                        .is_ready = observed->is_ready,
                        .ready_since = pod_ready_since(controller, state, observed, is_current),
                        .start_time = observed->start_time,
                };
        }
        *ret = claimed;
        claimed = (ClaimedPods){ 0 };
        return 0;
}

/* As the controller counts: of the pods on a node the oldest speaks for it. */
void daemonset_state_count_pods(const DaemonSetController *controller, DaemonSetState *state,
                                const ClaimedPods *claimed) {
        uint64_t patience = (uint64_t) state->set->spec.min_ready_seconds.value * USEC_PER_SEC;
        const DaemonSetPodState *oldest = NULL;

        state->n_current = 0;
        for (size_t i = 0; i < claimed->n; i++) {
                const DaemonSetPodState *pod = &claimed->pods[i];

                if (pod->is_terminating)
                        continue;
                state->n_current++;
                if (!oldest || pod->start_time < oldest->start_time)
                        oldest = pod;
        }
        state->n_updated = oldest && oldest->is_current;
        state->n_ready = oldest && oldest->is_ready;
        state->n_available =
                oldest && oldest->is_ready &&
                steady_now_usec(controller->config.clock) >= oldest->ready_since + patience;
}

bool daemonset_state_has_pods(const DaemonSetController *controller, const DaemonSetState *state) {
        for (size_t i = 0; i < controller->n_observed; i++) {
                const OwnerReference *owner =
                        object_controller(&controller->observed[i].pod->metadata);

                if (owner && streq(owner->uid, state->uid) && !controller->observed[i].is_api_pod)
                        return true;
        }
        return false;
}

int daemonset_controller_update_counts(DaemonSetController *controller) {
        int r = daemonset_controller_observe_pods(controller);

        for (DaemonSetState *state = controller->sets; state && r >= 0; state = state->next) {
                cleanup_with(claimed_pods_done) ClaimedPods claimed = { 0 };

                if (!state->set)
                        continue;
                r = daemonset_state_claim_pods(controller, state, &claimed);
                if (r >= 0)
                        daemonset_state_count_pods(controller, state, &claimed);
        }
        return r;
}
