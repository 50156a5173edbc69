/* SPDX-License-Identifier: Apache-2.0 */

/* One set is brought to where its plan is: which pods go on, which end, and whether a new one is
 * wished for; what is rolled back, and what is made anew after it ended by itself. */

#include "agent/daemonset/controller-private.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"

#include <inttypes.h>
#include <stdlib.h>

#define REVISION_PROVEN_USEC (10 * USEC_PER_SEC)
#define PREFLIGHT_RETRY_USEC (10 * USEC_PER_SEC)

/* NULL: there is none. Each is said once, not at each wish. */
static void set_daemonset_error(const DaemonSetController *controller, DaemonSetState *state,
                                const char *sentence) {
        const ObjectMeta *metadata = &state->set->metadata;

        if (streq_ptr(state->last_error, sentence))
                return;
        free(state->last_error);
        state->last_error = sentence ? strdup(sentence) : NULL;
        if (!sentence)
                return;
        log_warning("DaemonSet '%s/%s': its new pod could not begin%s: %s", metadata->namespace,
                    metadata->name, state->plan.awaits_preflight ? ", so the old one goes on" : "",
                    sentence);
        daemonset_state_record_event(controller, state, POD_EVENT_WARNING, "FailedCreate",
                                     "Error creating: %s", sentence);
}

/* ---- wishes ---- */

/* One of those that are there goes on. An orphan is adopted by that. */
static int keep_observed_pod(DaemonSetController *controller, const DaemonSetState *state,
                             ObservedPod *observed) {
        cleanup_with(pod_freep) Pod *copy = NULL;
        int r;

        if (!observed->is_orphan) {
                r = desired_pods_add(controller->desired, &state->source, observed->pod);
                return r < 0 ? r : 0;
        }
        r = pod_copy(observed->pod, &copy);
        if (r >= 0)
                r = daemonset_set_pod_owner(state->set, copy);
        if (r < 0)
                return r;
        log_info("DaemonSet '%s/%s' adopts pod '%s'", state->set->metadata.namespace,
                 state->set->metadata.name, copy->metadata.name);
        r = desired_pods_add_take(controller->desired, &state->source, TAKE_PTR(copy));
        if (r < 0)
                return r;
        daemonset_controller_drop_orphan(controller, observed->pod);
        observed->is_orphan = false;
        return 0;
}

static int add_current_revision_pod(DaemonSetController *controller, DaemonSetState *state,
                                    bool is_there) {
        int r = desired_pods_add(controller->desired, &state->source, state->pod);

        if (r < 0)
                return r;
        state->is_create_pending = !is_there && r > 0;
        if (r == 0)
                set_daemonset_error(controller, state, "its name is taken by another pod");
        else if (!state->plan.awaits_preflight)
                set_daemonset_error(controller, state, NULL);
        return 0;
}

static int keep_claimed_pods(DaemonSetController *controller, DaemonSetState *state,
                             const ClaimedPods *claimed) {
        bool wants_new = state->plan.creates_pod, is_there = false;
        const char *name = state->pod ? state->pod->metadata.name : NULL;
        int r = 0;

        for (size_t i = 0; i < claimed->n && r >= 0; i++) {
                ObservedPod *observed = claimed->observed[i];

                if (!claimed->keep[i])
                        continue;
                if (!streq_ptr(observed->pod->metadata.name, name)) {
                        r = keep_observed_pod(controller, state, observed);
                        continue;
                }
                is_there = true; /* it is the same one */
                daemonset_controller_drop_orphan(controller, observed->pod);
        }
        if (r >= 0 && (wants_new || is_there))
                r = add_current_revision_pod(controller, state, is_there);
        return r;
}

int daemonset_state_keep_pods(DaemonSetController *controller, const DaemonSetState *state) {
        int r = 0;

        for (size_t i = 0; i < controller->n_observed && r >= 0; i++) {
                ObservedPod *observed = &controller->observed[i];
                const OwnerReference *owner = object_controller(&observed->pod->metadata);

                if (!observed->is_terminating && owner && streq(owner->uid, state->uid))
                        r = keep_observed_pod(controller, state, observed);
        }
        return r;
}

/* ---- the pod of the wanted revision ---- */

/* The pod is made when something of it is another: a thousand sets at each wish would take a while.
 */
static bool is_current_pod_made(const DaemonSetState *state, const ControllerRevision *revision) {
        char number[24];

        (void) snprintf(number, sizeof(number), "%" PRId64, revision->number);
        return state->pod &&
               streq(string_map_get(&state->pod->metadata.labels, revision_hash_label),
                     revision->hash) &&
               streq(string_map_get(&state->pod->metadata.labels, "pod-template-generation"),
                     number);
}

static int make_current_revision_pod(DaemonSetController *controller, DaemonSetState *state) {
        const char *hash = daemonset_history_desired(&state->history);
        const ControllerRevision *revision = daemonset_history_find(&state->history, hash);
        Pod template = { 0 };
        int r;

        if (!revision)
                return -ENOENT;
        if (is_current_pod_made(state, revision))
                return 0;
        daemonset_state_forget_pod(state);
        if (streq(hash, state->history.template_hash))
                return daemonset_make_pod(state->set, &state->set->spec.template, hash,
                                          revision->number, controller->config.node_labels->name,
                                          &state->pod);
        r = daemonset_state_read_template(state, hash, &template);
        if (r >= 0)
                r = daemonset_make_pod(state->set, &template, hash, revision->number,
                                       controller->config.node_labels->name, &state->pod);
        schema_done(&pod_template_schema, &template);
        return r;
}

static void on_successor_preflight_changed(void *userdata) {
        daemonset_controller_schedule_sync(userdata);
}

/* 1: the new pod could begin; 0: not yet; -ENOMEM. */
static int preflight_successor(DaemonSetController *controller, DaemonSetState *state) {
        cleanup_error Error error = ERROR_NULL;
        int r = 0;

        if (!state->preflight)
                r = pod_manager_new_preflight(controller->config.pod_manager, state->pod,
                                              on_successor_preflight_changed, controller,
                                              &state->preflight);
        if (r >= 0)
                r = preflight_step(state->preflight, &error);
        set_daemonset_error(controller, state, r < 0 ? error_message(&error, r) : NULL);
        if (r >= 0 || r == -ENOMEM)
                return r;
        if (state->preflight)
                preflight_retry(state->preflight);
        daemonset_controller_requeue_at(controller, controller->now + PREFLIGHT_RETRY_USEC);
        return 0;
}

/* ---- the way back ---- */

static uint64_t progress_deadline_usec(const DaemonSet *set) {
        const char *text = string_map_get(&set->metadata.annotations,
                                          "mainstay.dev/progress-deadline-seconds");

        return text ? strtoull(text, NULL, 10) * USEC_PER_SEC : 0;
}

/* A pod that dies at once is ready for a moment, too. Where somebody counts on being rolled back,
 * the revision has to last before it is called good. */
static bool is_revision_proven(DaemonSetController *controller, const DaemonSetState *state) {
        uint64_t until = state->plan.ready_since +
                         MIN(progress_deadline_usec(state->set) / 2, REVISION_PROVEN_USEC);

        if (!state->plan.is_available)
                return false;
        if (controller->now >= until)
                return true;
        daemonset_controller_requeue_at(controller, until);
        return false;
}

/* When the wanted revision has had its time. What an agent that comes finds under way gets half of
 * it again: the machine may have been off. */
static uint64_t rollout_deadline(const DaemonSetController *controller,
                                 const DaemonSetState *state) {
        uint64_t usec = progress_deadline_usec(state->set);
        uint64_t end = state->history.rollout_since + usec;

        return MAX(end, controller->started_at + usec / 2);
}

/* True where another revision is wanted now: the last good one. */
static bool roll_back_revision(DaemonSetController *controller, DaemonSetState *state) {
        DaemonSetHistory *history = &state->history;
        const ControllerRevision *failed =
                daemonset_history_find(history, daemonset_history_desired(history));
        uint64_t deadline = progress_deadline_usec(state->set);
        cleanup_free char *reason = NULL;

        if (deadline == 0 || history->rollout_since == 0 || !history->last_available[0] ||
            !failed || state->decision.verdict != DAEMONSET_SHOULD_RUN ||
            streq(history->last_available, failed->hash))
                return false;
        if (controller->now < rollout_deadline(controller, state)) {
                daemonset_controller_requeue_at(controller, rollout_deadline(controller, state));
                return false;
        }
        if (asprintf(&reason,
                     ROLLED_BACK_PREFIX "revision %" PRId64
                                        " did not become available within %" PRIu64 "s",
                     failed->number, deadline / USEC_PER_SEC) < 0) {
                reason = NULL;
                return false;
        }
        log_warning("DaemonSet '%s/%s': %s", history->namespace, history->name, reason);
        daemonset_state_record_event(controller, state, POD_EVENT_WARNING, "DaemonSetRollback",
                                     "%s", reason);
        return daemonset_history_pin(history, history->last_available, NULL, reason,
                                     controller->now) >= 0;
}

/* ---- the step ---- */

static void update_daemonset_plan(const DaemonSetController *controller, DaemonSetState *state,
                                  const ClaimedPods *claimed, bool is_preflighted, bool backs_off) {
        const DaemonSetPodStates pods = { claimed->pods, claimed->n };

        daemonset_plan(state->set, &pods,
                       &(DaemonSetPlanInput){ .verdict = state->decision.verdict,
                                              .is_preflighted = is_preflighted,
                                              .is_backing_off = backs_off,
                                              .now = controller->now },
                       claimed->keep, &state->plan);
}

static int claim_and_plan_pods(DaemonSetController *controller, DaemonSetState *state,
                               ClaimedPods *ret) {
        int r;

        claimed_pods_done(ret);
        r = daemonset_state_claim_pods(controller, state, ret);
        if (r >= 0)
                update_daemonset_plan(controller, state, ret, /* is_preflighted= */ false,
                                      /* is_backing_off= */ true);
        return r;
}

static void record_terminated_pod_events(const DaemonSetController *controller,
                                         const DaemonSetState *state, const ClaimedPods *claimed) {
        for (size_t i = 0; i < claimed->n; i++) {
                const ObjectMeta *pod = &claimed->observed[i]->pod->metadata;
                bool has_failed = claimed->observed[i]->phase == POD_FAILED;

                if (claimed->pods[i].is_terminal && !claimed->pods[i].is_terminating)
                        daemonset_state_record_event(
                                controller, state,
                                has_failed ? POD_EVENT_WARNING : POD_EVENT_NORMAL,
                                has_failed ? "FailedDaemonPod" : "SucceededDaemonPod",
                                "Found %s daemon pod %s/%s on node %s, will try to %s it",
                                has_failed ? "failed" : "succeeded", pod->namespace, pod->name,
                                controller->config.node_labels->name,
                                has_failed ? "kill" : "delete");
        }
}

/* True where one that has ended by itself is made anew now. */
static bool should_recreate_pods(DaemonSetController *controller, DaemonSetState *state,
                                 const ClaimedPods *claimed) {
        const DaemonSetPodStates pods = { claimed->pods, claimed->n };
        uint64_t retry_at;

        if (state->plan.is_syncing || state->decision.verdict == DAEMONSET_SHOULD_STOP ||
            !daemonset_has_terminal_pod(state->set, &pods))
                return false;
        if (!failed_pods_backoff_is_over(&state->back_off,
                                         daemonset_history_desired(&state->history),
                                         controller->now, &retry_at)) {
                daemonset_controller_requeue_at(controller, retry_at);
                return false;
        }
        record_terminated_pod_events(controller, state, claimed);
        return true;
}

static void record_deleted_pod_events(const DaemonSetController *controller,
                                      const DaemonSetState *state, const ClaimedPods *claimed) {
        for (size_t i = 0; i < claimed->n; i++)
                if (!claimed->keep[i] && !claimed->pods[i].is_terminating)
                        daemonset_state_record_event(controller, state, POD_EVENT_NORMAL,
                                                     "SuccessfulDelete", "Deleted pod: %s",
                                                     claimed->observed[i]->pod->metadata.name);
}

/* Whether the wanted revision is good, or has had its time. */
static int check_rollout(DaemonSetController *controller, DaemonSetState *state,
                         ClaimedPods *claimed) {
        if (state->plan.is_syncing)
                return 0;
        if (is_revision_proven(controller, state)) {
                if (daemonset_history_mark_available(&state->history))
                        daemonset_state_store_or_log(controller, state);
                return 0;
        }
        if (!roll_back_revision(controller, state))
                return 0;
        daemonset_state_store_or_log(controller, state);
        return claim_and_plan_pods(controller, state, claimed);
}

int daemonset_state_sync(DaemonSetController *controller, DaemonSetState *state) {
        cleanup_with(claimed_pods_done) ClaimedPods claimed = { 0 };
        bool is_preflighted = false, is_recreated;
        int r = claim_and_plan_pods(controller, state, &claimed);

        if (r >= 0)
                r = check_rollout(controller, state, &claimed);
        if (r >= 0)
                r = make_current_revision_pod(controller, state);
        if (r < 0)
                return r;
        is_recreated = should_recreate_pods(controller, state, &claimed);
        if (state->plan.awaits_preflight) {
                r = preflight_successor(controller, state);
                if (r < 0)
                        return r;
                is_preflighted = r > 0;
        }
        if (is_recreated || is_preflighted)
                update_daemonset_plan(controller, state, &claimed, is_preflighted, !is_recreated);
        if (!state->plan.awaits_preflight && state->plan.is_available)
                daemonset_state_forget_preflight(state);
        daemonset_state_count_pods(controller, state, &claimed);
        daemonset_controller_requeue_at(controller, state->plan.again_at);
        record_deleted_pod_events(controller, state, &claimed);
        return keep_claimed_pods(controller, state, &claimed);
}
