/* SPDX-License-Identifier: Apache-2.0 */

/* The sync of one DaemonSet (Kubernetes: syncDaemonSet): determines which of its pods are kept or
 * deleted, and whether one of the current revision is created. Failed pods are replaced after their
 * back-off, and a rollout that misses its progress deadline is rolled back.
 *
 * A rolling update has no state of its own: each pass derives the plan from the existing pods and
 * the desired revision. So the agent may die during an update, and the next one continues it.
 * rules/rolling-update.c computes the plan. */

#include "agent/daemonset/checkpoint.h"
#include "agent/daemonset/daemonset-state-private.h"
#include "agent/daemonset/rules/history-update.h"
#include "agent/model/object-identity.h"
#include "agent/model/rollout-deadline.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define PREFLIGHT_RETRY_USEC (10 * USEC_PER_SEC)

static void store_revision_history(const DaemonSetSyncPass *pass, const DaemonSetState *state) {
        daemonset_checkpoint_store_or_log(pass->state_dir, state->uid, &state->history);
}

/* NULL: there is no error. Each error is logged once, not in each pass. */
static void set_daemonset_error(const DaemonSetSyncPass *pass, DaemonSetState *state,
                                const char *message) {
        const ObjectMeta *metadata = &state->set->metadata;

        if (streq_ptr(state->last_error, message))
                return;
        free(state->last_error);
        state->last_error = message ? strdup(message) : NULL;
        if (!message)
                return;
        log_warning("Cannot start the new pod of DaemonSet '%s/%s': %s%s", metadata->namespace,
                    metadata->name, message,
                    state->plan.awaits_preflight ? "; the old pod keeps running" : "");
        record_daemonset_event(pass, state->set, POD_EVENT_WARNING, "FailedCreate",
                               "Error creating: %s", message);
}

/* ---- whether the set runs on this node ---- */

static bool is_excluded_by_pod_affinity(const DaemonSetDecision *decision) {
        return decision->verdict == DAEMONSET_SHOULD_CONTINUE && decision->rule &&
               (streq(decision->rule, "podAffinity") || streq(decision->rule, "podAntiAffinity"));
}

/* Logs a changed verdict. A label value that changes only the reason, possibly of hundreds of sets
 * at once, is logged at debug level. */
static void log_daemonset_decision(const DaemonSetSyncPass *pass, const DaemonSetState *state,
                                   const DaemonSetDecision *last) {
        const DaemonSetDecision *decision = &state->decision;
        bool is_same_rule = last->why && decision->verdict == last->verdict &&
                            streq_ptr(decision->rule, last->rule);

        (is_same_rule ? log_debug : log_info)(
                "DaemonSet '%s/%s' %s here: %s", state->set->metadata.namespace,
                state->set->metadata.name,
                decision->verdict == DAEMONSET_SHOULD_RUN ? "runs" : "does not run", decision->why);
        if (is_excluded_by_pod_affinity(decision) &&
            !observed_pods_have_owner(&pass->observed, state->uid))
                record_daemonset_event(pass, state->set, POD_EVENT_WARNING, "FailedPlacement",
                                       "failed to place pod on \"%s\": %s", pass->node->name,
                                       decision->why);
}

static int evaluate_daemonset(DaemonSetSyncPass *pass, DaemonSetState *state) {
        const NodePods node_pods = { pass->observed.peers, pass->observed.n_peers };
        const Affinity *affinity = state->set->spec.template.spec.affinity;
        DaemonSetDecision last = state->decision, decision = { 0 };
        int r;

        r = daemonset_evaluate_placement(state->set, pass->node, &node_pods, pass->now, &decision);
        if (r < 0)
                return r;
        state->decision = decision;
        if (!streq_ptr(decision.why, last.why))
                log_daemonset_decision(pass, state, &last);
        daemonset_decision_done(&last);
        sync_pass_requeue_at(pass, decision.until);
        pass->has_peer_affinity =
                pass->has_peer_affinity || decision.verdict == DAEMONSET_SHOULD_CONTINUE ||
                (affinity && (affinity->pod_affinity || affinity->pod_anti_affinity));
        return 0;
}

/* ---- the desired pods ---- */

/* An existing pod continues. This is also how an orphan is adopted. */
static int keep_observed_pod(DaemonSetSyncPass *pass, const DaemonSetState *state,
                             ObservedPod *observed) {
        cleanup_with(pod_freep) Pod *copy = NULL;
        int r;

        if (!observed->is_orphan) {
                r = desired_pods_add(pass->desired, &state->source, observed->pod);
                return r < 0 ? r : 0;
        }
        r = pod_copy(observed->pod, &copy);
        if (r < 0)
                return r;
        r = daemonset_set_pod_owner(state->set, copy);
        if (r < 0)
                return r;
        log_info("DaemonSet '%s/%s' adopts orphan pod '%s'", state->set->metadata.namespace,
                 state->set->metadata.name, copy->metadata.name);
        r = desired_pods_add_take(pass->desired, &state->source, TAKE_PTR(copy));
        if (r < 0)
                return r;
        orphan_pods_drop(pass->orphans, observed->pod->metadata.uid);
        observed->is_orphan = false;
        return 0;
}

static int add_current_revision_pod(DaemonSetSyncPass *pass, DaemonSetState *state, bool is_there) {
        int r = desired_pods_add(pass->desired, &state->source, state->pod);

        if (r < 0)
                return r;
        state->is_create_pending = !is_there && r > 0;
        if (r == 0)
                set_daemonset_error(pass, state, "another pod has its name");
        else if (!state->plan.awaits_preflight)
                set_daemonset_error(pass, state, NULL);
        return 0;
}

static int keep_claimed_pods(DaemonSetSyncPass *pass, DaemonSetState *state,
                             const ClaimedPods *claimed) {
        const char *name = state->pod ? state->pod->metadata.name : NULL;
        bool is_there = false;

        for (size_t i = 0; i < claimed->n; i++) {
                ObservedPod *observed = claimed->observed[i];
                int r;

                if (!claimed->keep[i])
                        continue;
                if (streq_ptr(observed->pod->metadata.name, name)) {
                        is_there = true; /* the pod of the current revision, which is added below */
                        orphan_pods_drop(pass->orphans, observed->pod->metadata.uid);
                        continue;
                }
                r = keep_observed_pod(pass, state, observed);
                if (r < 0)
                        return r;
        }
        if (state->plan.creates_pod || is_there)
                return add_current_revision_pod(pass, state, is_there);
        return 0;
}

int daemonset_state_keep_pods(DaemonSetSyncPass *pass, const DaemonSetState *state) {
        for (size_t i = 0; i < pass->observed.n; i++) {
                ObservedPod *observed = &pass->observed.items[i];
                int r;

                if (observed->is_terminating ||
                    !local_pod_is_owned_by_uid(observed->pod, state->uid))
                        continue;
                r = keep_observed_pod(pass, state, observed);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- the pod of the desired revision ---- */

/* The pod is created again only if its revision changes: doing this for a thousand sets in each
 * pass would take too long. */
static bool is_current_pod_made(const DaemonSetState *state, const ControllerRevision *revision) {
        const StringMap *labels;
        char number[24];

        if (!state->pod)
                return false;
        labels = &state->pod->metadata.labels;
        (void) snprintf(number, sizeof(number), "%" PRId64, revision->number);
        return streq(string_map_get(labels, revision_hash_label), revision->hash) &&
               streq(string_map_get(labels, "pod-template-generation"), number);
}

static int make_revision_pod(const DaemonSetSyncPass *pass, const DaemonSetState *state,
                             const ControllerRevision *revision, Pod **ret) {
        const char *hash = revision->hash, *node = pass->node->name;
        Pod template = { 0 };
        int r;

        if (streq(hash, state->history.template_hash))
                return daemonset_make_pod(state->set, &state->set->spec.template, hash,
                                          revision->number, node, ret);
        r = daemonset_state_read_template(state, hash, &template);
        if (r >= 0)
                r = daemonset_make_pod(state->set, &template, hash, revision->number, node, ret);
        schema_done(&pod_template_schema, &template);
        return r;
}

static int make_current_revision_pod(const DaemonSetSyncPass *pass, DaemonSetState *state) {
        const ControllerRevision *revision =
                daemonset_history_find(&state->history, daemonset_history_desired(&state->history));
        cleanup_with(pod_freep) Pod *pod = NULL;
        int r;

        if (!revision)
                return -ENOENT;
        if (is_current_pod_made(state, revision))
                return pod_set_source(state->pod, &state->source);
        daemonset_state_forget_pod(state);
        r = make_revision_pod(pass, state, revision, &pod);
        if (r < 0)
                return r;
        r = pod_set_source(pod, &state->source);
        if (r < 0)
                return r;
        state->pod = TAKE_PTR(pod);
        return 0;
}

/* 1: the new pod could start; 0: not yet; -ENOMEM. */
static int preflight_successor(DaemonSetSyncPass *pass, DaemonSetState *state) {
        cleanup_error Error error = ERROR_NULL;
        int r = 0;

        if (!state->preflight)
                r = pass->pod_access->new_preflight(pass->pods, state->pod, pass->schedule_sync,
                                                    pass->sync_userdata, &state->preflight);
        if (r >= 0)
                r = preflight_step(state->preflight, &error);
        set_daemonset_error(pass, state, r < 0 ? error_message(&error, r) : NULL);
        if (r >= 0 || r == -ENOMEM)
                return r;
        if (state->preflight)
                preflight_retry(state->preflight);
        sync_pass_requeue_at(pass, pass->now + PREFLIGHT_RETRY_USEC);
        return 0;
}

/* ---- admission ---- */

static void set_refusal(const DaemonSetSyncPass *pass, DaemonSetState *state,
                        DaemonSetRefusal *refusal) {
        const ObjectMeta *metadata = &state->set->metadata;
        bool is_new = refusal->reason && !streq_ptr(state->refusal.message, refusal->message);

        daemonset_refusal_done(&state->refusal);
        state->refusal = *refusal;
        *refusal = (DaemonSetRefusal){ 0 };
        if (!is_new)
                return;
        log_warning("Not creating the pod of DaemonSet '%s/%s': %s", metadata->namespace,
                    metadata->name, strna(state->refusal.message));
        record_daemonset_event(pass, state->set, POD_EVENT_WARNING, state->refusal.reason, "%s",
                               strna(state->refusal.message));
}

static bool has_current_pod(const DaemonSetState *state, const ClaimedPods *claimed) {
        for (size_t i = 0; i < claimed->n; i++)
                if (!claimed->pods[i].is_terminating && !claimed->pods[i].is_terminal &&
                    objects_share_name(&claimed->observed[i]->pod->metadata, &state->pod->metadata))
                        return true;
        return false;
}

/* An existing pod has already been admitted. 0 or -ENOMEM. */
static int admit_current_pod(const DaemonSetSyncPass *pass, DaemonSetState *state,
                             const ClaimedPods *claimed) {
        cleanup_with(daemonset_refusal_done) DaemonSetRefusal refusal = { 0 };
        int r = 1;

        if (pass->admit && state->decision.verdict == DAEMONSET_SHOULD_RUN &&
            !has_current_pod(state, claimed))
                r = pass->admit(&state->source, state->set, state->pod, &refusal,
                                pass->event_userdata);
        if (r < 0)
                return r;
        state->is_refused = r == 0;
        set_refusal(pass, state, &refusal);
        return 0;
}

/* ---- claim and plan ---- */

static bool is_node_shutting_down(const DaemonSetSyncPass *pass) {
        return pass->pod_access->is_shutting_down(pass->pods);
}

static int claim_pods_of_state(DaemonSetSyncPass *pass, DaemonSetState *state, ClaimedPods *ret) {
        const PodClaim claim = { .set = state->set,
                                 .revision_hash = daemonset_history_desired(&state->history),
                                 .clock = pass->clock,
                                 .current_ready = &state->current_ready,
                                 .adopts_orphans = pod_source_is_manifest(&state->source) };
        int r;

        claimed_pods_done(ret);
        r = claim_daemonset_pods(&claim, &pass->observed, ret);
        /* During a shutdown, pods are expected to be stopped or not ready, so they are kept. */
        for (size_t i = 0; r >= 0 && i < ret->n && is_node_shutting_down(pass); i++) {
                ret->pods[i].is_syncing = true;
                ret->pods[i].is_terminal = false;
        }
        return r;
}

static void update_daemonset_plan(const DaemonSetSyncPass *pass, DaemonSetState *state,
                                  const ClaimedPods *claimed, bool is_preflighted,
                                  bool is_backing_off) {
        const DaemonSetPodStates pods = { claimed->pods, claimed->n };
        bool creates_none = state->is_refused && state->decision.verdict == DAEMONSET_SHOULD_RUN;

        daemonset_plan_update(state->set, &pods,
                              &(DaemonSetPlanInput){ .verdict = creates_none
                                                                        ? DAEMONSET_SHOULD_CONTINUE
                                                                        : state->decision.verdict,
                                                     .is_preflighted = is_preflighted,
                                                     .is_backing_off = is_backing_off,
                                                     .now = pass->now },
                              claimed->keep, &state->plan);
}

static int claim_and_plan_pods(DaemonSetSyncPass *pass, DaemonSetState *state, ClaimedPods *ret) {
        int r = claim_pods_of_state(pass, state, ret);

        if (r < 0)
                return r;
        update_daemonset_plan(pass, state, ret, /* is_preflighted= */ false,
                              /* is_backing_off= */ true);
        return 0;
}

int daemonset_state_update_counts(DaemonSetSyncPass *pass, DaemonSetState *state) {
        cleanup_with(claimed_pods_done) ClaimedPods claimed = { 0 };
        int r;

        if (!state->set)
                return 0;
        r = claim_pods_of_state(pass, state, &claimed);
        if (r < 0)
                return r;
        state->counts = count_claimed_pods(state->set, &claimed, steady_now_usec(pass->clock));
        return 0;
}

/* ---- progress deadline and rollback ---- */

static int roll_back_revision(DaemonSetSyncPass *pass, DaemonSetState *state) {
        DaemonSetHistory *history = &state->history;
        const ControllerRevision *failed =
                daemonset_history_find(history, daemonset_history_desired(history));
        cleanup_free char *reason = NULL;

        reason = text_format(ROLLED_BACK_PREFIX "revision %" PRId64
                                                " did not become available within %" PRIu64 "s",
                             failed->number,
                             daemonset_progress_deadline_usec(state->set) / USEC_PER_SEC);
        if (!reason)
                return -ENOMEM;
        log_warning("DaemonSet '%s/%s': %s", history->namespace, history->name, reason);
        record_daemonset_event(pass, state->set, POD_EVENT_WARNING, "DaemonSetRollback", "%s",
                               reason);
        return daemonset_history_pin(history, history->last_available, NULL, reason, pass->now);
}

static RolloutState read_rollout_state(DaemonSetSyncPass *pass, const DaemonSetState *state) {
        uint64_t deadline = daemonset_progress_deadline_usec(state->set);

        return (RolloutState){
                .deadline_usec = deadline,
                .since = state->history.rollout_since,
                .can_go_back = deadline > 0 && state->decision.verdict == DAEMONSET_SHOULD_RUN &&
                               daemonset_history_can_go_back(&state->history),
                .must_be_good_in_time = true,
                .is_ready = state->plan.is_available,
                .ready_since = state->plan.ready_since,
                .awake_since = awake_since_usec(&pass->awake, pass->clock),
                .now = pass->now,
        };
}

/* Whether the desired revision is good, or has missed its deadline. */
static int check_rollout_deadline(DaemonSetSyncPass *pass, DaemonSetState *state,
                                  ClaimedPods *claimed) {
        const RolloutState rollout = read_rollout_state(pass, state);
        uint64_t again_at;

        /* During a shutdown no pod starts, so a set without a pod makes no progress either. */
        if (state->plan.is_syncing || is_node_shutting_down(pass))
                return 0;
        switch (rollout_decide(&rollout, &again_at)) {
        case ROLLOUT_IS_GOOD:
                if (daemonset_history_mark_available(&state->history))
                        store_revision_history(pass, state);
                break;
        case ROLLOUT_GOES_BACK:
                if (roll_back_revision(pass, state) < 0)
                        break; /* retried in the next pass */
                store_revision_history(pass, state);
                return claim_and_plan_pods(pass, state, claimed);
        case ROLLOUT_CONTINUES:
                sync_pass_requeue_at(pass, again_at);
                break;
        }
        return 0;
}

/* ---- failed pods ---- */

static void record_terminated_pod_events(const DaemonSetSyncPass *pass, const DaemonSetState *state,
                                         const ClaimedPods *claimed) {
        for (size_t i = 0; i < claimed->n; i++) {
                const ObjectMeta *pod = &claimed->observed[i]->pod->metadata;
                bool has_failed = claimed->observed[i]->phase == POD_FAILED;

                if (claimed->pods[i].is_terminal && !claimed->pods[i].is_terminating)
                        record_daemonset_event(
                                pass, state->set, has_failed ? POD_EVENT_WARNING : POD_EVENT_NORMAL,
                                has_failed ? "FailedDaemonPod" : "SucceededDaemonPod",
                                "Found %s daemon pod %s/%s on node %s, will try to %s it",
                                has_failed ? "failed" : "succeeded", pod->namespace, pod->name,
                                pass->node->name, has_failed ? "kill" : "delete");
        }
}

/* True if a pod that has failed or succeeded is replaced now. */
static bool should_replace_failed_pods(DaemonSetSyncPass *pass, DaemonSetState *state,
                                       const ClaimedPods *claimed) {
        const DaemonSetPodStates pods = { claimed->pods, claimed->n };
        uint64_t retry_at;

        if (state->plan.is_syncing || state->decision.verdict == DAEMONSET_SHOULD_STOP ||
            !daemonset_has_terminal_pod(state->set, &pods))
                return false;
        if (!failed_pods_back_off_is_over(&state->back_off,
                                          daemonset_history_desired(&state->history), pass->now,
                                          &retry_at)) {
                sync_pass_requeue_at(pass, retry_at);
                return false;
        }
        record_terminated_pod_events(pass, state, claimed);
        return true;
}

/* ---- the sync ---- */

static void record_deleted_pod_events(const DaemonSetSyncPass *pass, const DaemonSetState *state,
                                      const ClaimedPods *claimed) {
        for (size_t i = 0; i < claimed->n; i++)
                if (!claimed->keep[i] && !claimed->pods[i].is_terminating)
                        record_daemonset_event(pass, state->set, POD_EVENT_NORMAL,
                                               "SuccessfulDelete", "Deleted pod: %s",
                                               claimed->observed[i]->pod->metadata.name);
}

static int sync_daemonset_pods(DaemonSetSyncPass *pass, DaemonSetState *state) {
        cleanup_with(claimed_pods_done) ClaimedPods claimed = { 0 };
        bool is_preflighted = false, is_replaced;
        int r;

        r = claim_and_plan_pods(pass, state, &claimed);
        if (r < 0)
                return r;
        r = check_rollout_deadline(pass, state, &claimed);
        if (r < 0)
                return r;
        r = make_current_revision_pod(pass, state);
        if (r < 0)
                return r;
        r = admit_current_pod(pass, state, &claimed);
        if (r < 0)
                return r;
        update_daemonset_plan(pass, state, &claimed, is_preflighted, /* is_backing_off= */ true);
        is_replaced = !state->is_refused && should_replace_failed_pods(pass, state, &claimed);
        if (state->plan.awaits_preflight) {
                r = preflight_successor(pass, state);
                if (r < 0)
                        return r;
                is_preflighted = r > 0;
        }
        if (is_replaced || is_preflighted)
                update_daemonset_plan(pass, state, &claimed, is_preflighted, !is_replaced);
        if (!state->plan.awaits_preflight && state->plan.is_available)
                daemonset_state_forget_preflight(state);
        state->counts = count_claimed_pods(state->set, &claimed, steady_now_usec(pass->clock));
        sync_pass_requeue_at(pass, state->plan.again_at);
        record_deleted_pod_events(pass, state, &claimed);
        return keep_claimed_pods(pass, state, &claimed);
}

/* Whether the pods of the set are orphans and its file has not been removed. An agent that finds
 * both when it starts continues the work of an agent that died before it could remove the file. */
static bool is_being_orphaned(const DaemonSetSyncPass *pass, DaemonSetState *state) {
        if (!state->history.is_orphaning || pass->generation > 1)
                return state->history.is_orphaning;
        log_warning(
                "DaemonSet '%s/%s' was deleted with --cascade=orphan, but its manifest is still "
                "there; adopting its pods again",
                state->set->metadata.namespace, state->set->metadata.name);
        state->history.is_orphaning = false;
        state->has_changed = true;
        return false;
}

/* The selector was changed while no agent was running. */
static int keep_mismatched_pods(DaemonSetSyncPass *pass, DaemonSetState *state) {
        if (!state->has_selector_mismatch)
                log_error("%s: daemonset %s/%s: spec.selector: field is immutable; its pods keep "
                          "running as they are",
                          pod_source_describe(&state->source), state->set->metadata.namespace,
                          state->set->metadata.name);
        state->has_selector_mismatch = true;
        return daemonset_state_keep_pods(pass, state);
}

static int update_revision_history(DaemonSetSyncPass *pass, DaemonSetState *state) {
        int r;

        pass->has_changed_sets = true;
        r = daemonset_history_update_set(&state->history, state->set,
                                         pod_source_format(&state->source),
                                         state->plan.is_available, pass->now);
        if (r < 0)
                return r;
        if (r > 0)
                store_revision_history(pass, state);
        state->has_changed = false;
        return 0;
}

int daemonset_state_sync(DaemonSetSyncPass *pass, DaemonSetState *state) {
        int r;

        if (is_being_orphaned(pass, state))
                return 0;
        r = daemonset_history_update_selector(
                &state->history, state->set, observed_pods_have_owner(&pass->observed, state->uid));
        if (r < 0)
                return r;
        if (r == SELECTOR_MISMATCH)
                return keep_mismatched_pods(pass, state);
        if (r == SELECTOR_REPLACED)
                store_revision_history(pass, state);
        state->has_selector_mismatch = false;
        r = evaluate_daemonset(pass, state);
        if (r < 0)
                return r;
        if (state->has_changed) {
                r = update_revision_history(pass, state);
                if (r < 0)
                        return r;
        }
        return sync_daemonset_pods(pass, state);
}

/* ---- between passes ---- */

/* Whether the pod has failed or succeeded, but not because it was deleted: for example, it was
 * evicted. */
static bool has_pod_terminated(const DaemonSetSyncPass *pass, const Pod *pod) {
        const PodStatus *status = pass->pod_access->get_status(pass->pods, pod->metadata.uid);

        return status && (status->phase == POD_FAILED || status->phase == POD_SUCCEEDED) &&
               status->deletion_time == 0;
}

/* A pod that has terminated is replaced, and one that is being deleted is no longer desired, so
 * that the next pod is admitted again. */
static bool is_pod_ending(const DaemonSetSyncPass *pass, const Pod *pod) {
        const PodStatus *status = pass->pod_access->get_status(pass->pods, pod->metadata.uid);

        return status && (status->phase == POD_FAILED || status->phase == POD_SUCCEEDED ||
                          status->deletion_time > 0);
}

bool daemonset_state_on_pod(DaemonSetSyncPass *pass, DaemonSetState *state, const Pod *pod,
                            bool is_new, bool is_gone) {
        if (state->is_create_pending && is_new &&
            objects_share_name(&pod->metadata, &state->pod->metadata)) {
                state->is_create_pending = false;
                record_daemonset_event(pass, state->set, POD_EVENT_NORMAL, "SuccessfulCreate",
                                       "Created pod: %s", pod->metadata.name);
        }
        return is_gone || !state->plan.is_settled || state->history.rollout_since > 0 ||
               is_pod_ending(pass, pod);
}

/* The reason why a desired set does not desire one of its pods. */
static char *explain_daemonset_plan(const DaemonSetSyncPass *pass, const DaemonSetState *state,
                                    const Pod *pod) {
        const ObjectMeta *set = &state->set->metadata;
        const char *hash = daemonset_history_desired(&state->history);
        const ControllerRevision *revision = daemonset_history_find(&state->history, hash);
        bool is_current =
                streq_ptr(string_map_get(&pod->metadata.labels, revision_hash_label), hash);

        if (state->decision.verdict == DAEMONSET_SHOULD_STOP)
                return text_format("DaemonSet %s/%s no longer selects this node: %s",
                                   set->namespace, set->name, strna(state->decision.why));
        if (!is_current && revision)
                return text_format("replaced by revision %" PRId64 " of DaemonSet %s/%s",
                                   revision->number, set->namespace, set->name);
        if (has_pod_terminated(pass, pod))
                return text_format("it has terminated, and DaemonSet %s/%s replaces it",
                                   set->namespace, set->name);
        return text_format("DaemonSet %s/%s has another pod on this node", set->namespace,
                           set->name);
}

char *daemonset_state_explain_stop(const DaemonSetSyncPass *pass, const DaemonSetState *state,
                                   const Pod *pod) {
        if (state->history.is_orphaning)
                return NULL;
        if (daemonset_state_is_desired(state, pass->generation))
                return explain_daemonset_plan(pass, state, pod);
        if (!state->is_removed)
                return NULL; /* it is unknown whether its source still contains it */
        return text_format("DaemonSet %s/%s was removed", strna(state->history.namespace),
                           strna(state->history.name));
}

bool daemonset_state_retry_preflight(DaemonSetState *state) {
        if (!state->preflight)
                return false;
        preflight_retry(state->preflight);
        return true;
}
