/* SPDX-License-Identifier: Apache-2.0 */

/* Nothing is remembered of an update under way: at each wish the pods that there are and the
 * revision that is wanted say what is due, as the plan has it. So an agent may die in the middle of
 * it, and the next one goes on. */

#include "agent/daemonset/controller.h"

#include "agent/daemonset/controller-private.h"
#include "agent/model/match.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/strv.h"

#include <inttypes.h>
#include <stdlib.h>

DaemonSetState *daemonset_controller_find_uid(DaemonSetController *controller, const char *uid) {
        for (DaemonSetState *state = controller->sets; state; state = state->next)
                if (streq(state->uid, uid))
                        return state;
        return NULL;
}

bool daemonset_state_is_desired(const DaemonSetController *controller,
                                const DaemonSetState *state) {
        return state->set && state->generation == controller->generation;
}

DaemonSetState *daemonset_controller_find(DaemonSetController *controller, const char *namespace,
                                          const char *name) {
        for (DaemonSetState *state = controller->sets; state; state = state->next)
                if (daemonset_state_is_desired(controller, state) &&
                    streq(state->set->metadata.name, name) &&
                    streq(state->set->metadata.namespace, namespace))
                        return state;
        return NULL;
}

DaemonSetState *daemonset_controller_add(DaemonSetController *controller, const char *uid) {
        DaemonSetState *state = calloc(1, sizeof(*state));

        if (!state)
                return NULL;
        state->uid = strdup(uid);
        if (!state->uid) {
                free(state);
                return NULL;
        }
        state->next = controller->sets;
        controller->sets = state;
        return state;
}

void daemonset_state_forget_preflight(DaemonSetState *state) {
        state->preflight = preflight_free(state->preflight);
        free(state->last_error);
        state->last_error = NULL;
}

void daemonset_state_forget_pod(DaemonSetState *state) {
        daemonset_state_forget_preflight(state);
        state->pod = pod_free(state->pod);
        state->is_create_pending = false;
}

void daemonset_state_free(DaemonSetState *state) {
        daemonset_history_done(&state->history);
        daemonset_decision_done(&state->decision);
        daemonset_free(state->set);
        daemonset_state_forget_pod(state);
        pod_source_done(&state->source);
        free(state->uid);
        free(state);
}

void daemonset_controller_schedule_sync(DaemonSetController *controller) {
        controller->config.on_recompute_due(controller->config.userdata);
}

static int on_daemonset_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        daemonset_controller_schedule_sync(userdata);
        return 0;
}

int daemonset_controller_new(const DaemonSetControllerConfig *config, DaemonSetController **ret) {
        cleanup_with(daemonset_controller_freep) DaemonSetController *controller =
                calloc(1, sizeof(*controller));
        int r;

        if (!controller)
                return -ENOMEM;
        controller->config = *config;
        controller->started_at = steady_now_usec(config->clock);
        r = sd_event_add_time(config->event, &controller->timer, CLOCK_BOOTTIME, 0, 1,
                              on_daemonset_timer, controller);
        if (r >= 0)
                r = sd_event_source_set_enabled(controller->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(controller);
        return 0;
}

DaemonSetController *daemonset_controller_free(DaemonSetController *controller) {
        if (!controller)
                return NULL;
        while (controller->sets) {
                DaemonSetState *state = controller->sets;

                controller->sets = state->next;
                daemonset_state_free(state);
        }
        for (size_t i = 0; i < controller->n_orphans; i++)
                pod_free(controller->orphans[i]);
        free(controller->orphans);
        daemonset_controller_clear_observed(controller);
        strv_free(controller->warnings);
        sd_event_source_disable_unref(controller->timer);
        free(controller);
        return NULL;
}

/* ---- one set ---- */

static void begin_daemonset_sync(DaemonSetController *controller, DesiredPods *desired) {
        controller->desired = desired;
        controller->generation++;
        controller->now = steady_now_usec(controller->config.clock);
        controller->requeue_at = 0;
        controller->has_peer_affinity = false;
        controller->has_failed = daemonset_controller_observe_pods(controller) < 0;
}

void daemonset_controller_requeue_at(DaemonSetController *controller, uint64_t when) {
        if (when > 0 && (controller->requeue_at == 0 || when < controller->requeue_at))
                controller->requeue_at = when;
}

/* What keeps a pod away that belongs here, and is no choice of the set's about nodes. */
static bool is_kept_off_by_affinity(const DaemonSetDecision *decision) {
        return decision->verdict == DAEMONSET_SHOULD_CONTINUE && decision->rule &&
               (streq(decision->rule, "podAffinity") || streq(decision->rule, "podAntiAffinity"));
}

static void log_daemonset_decision(const DaemonSetController *controller,
                                   const DaemonSetState *state) {
        const DaemonSetDecision *decision = &state->decision;

        log_info("DaemonSet '%s/%s' %s here: %s", state->set->metadata.namespace,
                 state->set->metadata.name,
                 decision->verdict == DAEMONSET_SHOULD_RUN ? "runs" : "does not run",
                 decision->why);
        if (is_kept_off_by_affinity(decision) && !daemonset_state_has_pods(controller, state))
                daemonset_state_record_event(controller, state, POD_EVENT_WARNING,
                                             "FailedPlacement", "failed to place pod on \"%s\": %s",
                                             controller->config.node_labels->name, decision->why);
}

static int evaluate_daemonset(DaemonSetController *controller, DaemonSetState *state) {
        const NodePods peers = { controller->peers, controller->n_observed };
        const Affinity *affinity = state->set->spec.template.spec.affinity;
        DaemonSetDecision decision = { 0 };
        bool has_changed;
        int r = daemonset_evaluate(state->set, controller->config.node_labels, &peers,
                                   controller->now, &decision);

        if (r < 0)
                return r;
        has_changed = !streq_ptr(decision.why, state->decision.why);
        daemonset_decision_done(&state->decision);
        state->decision = decision;
        if (has_changed)
                log_daemonset_decision(controller, state);
        daemonset_controller_requeue_at(controller, decision.until);
        controller->has_peer_affinity =
                controller->has_peer_affinity || decision.verdict == DAEMONSET_SHOULD_CONTINUE ||
                (affinity && (affinity->pod_affinity || affinity->pod_anti_affinity));
        return 0;
}

/* 1 where the set, or where it is from, is another than before; 0; -ENOMEM. */
static int update_daemonset(DaemonSetState *state, const PodSource *source, const DaemonSet *set) {
        cleanup_with(daemonset_freep) DaemonSet *copy = NULL;
        PodSource source_copy;

        state->is_removed = false;
        if (!pod_sources_equal(&state->source, source)) {
                if (pod_source_copy(source, &source_copy) < 0)
                        return -ENOMEM;
                pod_source_done(&state->source);
                state->source = source_copy;
                state->has_changed = true;
        }
        if (state->set && schema_equal(&daemonset_schema, state->set, set))
                return 0;
        if (daemonset_copy(set, &copy) < 0)
                return -ENOMEM;
        daemonset_free(state->set);
        state->set = TAKE_PTR(copy);
        daemonset_state_forget_pod(state);
        state->has_changed = true;
        state->history.is_orphaning = false; /* somebody wrote it anew */
        return 0;
}

/* Its pods were left and its file is on its way out; unless the agent that was asked for it died
 * before it could remove the file. */
static bool is_being_orphaned(const DaemonSetController *controller, DaemonSetState *state) {
        bool is_first = controller->generation == 1;

        if (state->history.is_orphaning && is_first) {
                log_warning("DaemonSet '%s/%s' was to be deleted without its pods, and is still "
                            "there: it takes them again",
                            state->set->metadata.namespace, state->set->metadata.name);
                state->history.is_orphaning = false;
                state->has_changed = true;
        }
        return state->history.is_orphaning;
}

/* While no agent looked the selector became another. The pods that there are stay as they are. */
static int keep_mismatched_pods(DaemonSetController *controller, DaemonSetState *state) {
        if (!state->has_selector_mismatch)
                log_error("%s: daemonset %s/%s: spec.selector: field is immutable; its pods go on "
                          "as they are",
                          pod_source_format(&state->source), state->set->metadata.namespace,
                          state->set->metadata.name);
        state->has_selector_mismatch = true;
        return daemonset_state_keep_pods(controller, state);
}

static int sync_daemonset(DaemonSetController *controller, const PodSource *source,
                          const DaemonSet *set) {
        DaemonSetState *state = daemonset_controller_find_uid(controller, set->metadata.uid);
        int r;

        if (!state)
                state = daemonset_controller_add(controller, set->metadata.uid);
        r = state ? update_daemonset(state, source, set) : -ENOMEM;
        if (r < 0)
                return r;
        state->generation = controller->generation;
        if (is_being_orphaned(controller, state))
                return 0;
        r = daemonset_state_check_selector(controller, state,
                                           daemonset_state_has_pods(controller, state));
        if (r <= 0)
                return r < 0 ? r : keep_mismatched_pods(controller, state);
        state->has_selector_mismatch = false;
        r = evaluate_daemonset(controller, state);
        if (r >= 0 && state->has_changed) {
                controller->has_changed = true;
                r = daemonset_state_update_history(controller, state);
                state->has_changed = r < 0;
        }
        return r < 0 ? r : daemonset_state_sync(controller, state);
}

static void sync_daemonset_or_keep_pods(DaemonSetController *controller, const PodSource *source,
                                        const DaemonSet *set) {
        int r = controller->has_failed ? -ENOMEM : sync_daemonset(controller, source, set);

        if (r < 0 && r != -ENOMEM) {
                (void) log_error_errno(r, "Cannot decide on daemonset '%s/%s', its pods go on",
                                       set->metadata.namespace, set->metadata.name);
                r = daemonset_state_keep_pods(
                        controller, daemonset_controller_find_uid(controller, set->metadata.uid));
        }
        /* Who could not be decided on must not be taken for one who is not wanted. */
        controller->has_failed = controller->has_failed || r < 0;
}

/* ---- all sets ---- */

/* It is nothing any more but the owner of pods that are ending, or that have not been taken from it
 * yet. Should it come again, it is new. */
static void keep_as_pod_owner(DaemonSetController *controller, DaemonSetState *state) {
        controller->has_undesired = true;
        state->is_removed = state->is_removed || state->set;
        daemonset_state_forget_pod(state);
        state->set = daemonset_free(state->set);
}

static void forget_undesired_daemonsets(DaemonSetController *controller) {
        controller->has_undesired = false;
        for (DaemonSetState **link = &controller->sets; *link;) {
                DaemonSetState *state = *link;
                bool is_desired = state->generation == controller->generation;

                if (is_desired || daemonset_state_has_pods(controller, state)) {
                        if (!is_desired)
                                keep_as_pod_owner(controller, state);
                        link = &state->next;
                        continue;
                }
                *link = state->next;
                controller->has_changed = true;
                daemonset_state_remove_file(controller, state);
                daemonset_state_free(state);
        }
}

static bool selects_pods_of(const DaemonSet *set, const DaemonSet *other) {
        return label_selector_matches(set->spec.selector, &other->spec.template.metadata.labels);
}

static void warn_daemonset_overlap(DaemonSetController *controller, const DaemonSetState *a,
                                   const DaemonSetState *b) {
        const ObjectMeta *left = &a->set->metadata, *right = &b->set->metadata;

        if (streq(left->namespace, right->namespace) &&
            (selects_pods_of(a->set, b->set) || selects_pods_of(b->set, a->set)))
                (void) strv_appendf(&controller->warnings,
                                    "%s: daemonset %s/%s and daemonset %s/%s of %s: one's selector "
                                    "matches the pods of the other",
                                    pod_source_format(&b->source), right->namespace, right->name,
                                    left->namespace, left->name, pod_source_format(&a->source));
}

static void warn_daemonset_overlaps(DaemonSetController *controller) {
        if (!controller->has_changed)
                return;
        controller->has_changed = false;
        controller->warnings = strv_free(controller->warnings);
        for (const DaemonSetState *a = controller->sets; a; a = a->next)
                for (const DaemonSetState *b = a->next;
                     b && daemonset_state_is_desired(controller, a); b = b->next)
                        if (daemonset_state_is_desired(controller, b))
                                warn_daemonset_overlap(controller, a, b);
}

static void arm_daemonset_timer(DaemonSetController *controller) {
        int r = 0;

        if (controller->requeue_at == 0)
                (void) sd_event_source_set_enabled(controller->timer, SD_EVENT_OFF);
        else {
                r = sd_event_source_set_time(controller->timer,
                                             controller->requeue_at -
                                                     controller->config.clock->offset);
                if (r >= 0)
                        r = sd_event_source_set_enabled(controller->timer, SD_EVENT_ONESHOT);
        }
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the timer of the daemonsets");
}

static void end_daemonset_sync(DaemonSetController *controller) {
        daemonset_controller_keep_orphans(controller);
        if (!controller->has_failed)
                forget_undesired_daemonsets(controller);
        warn_daemonset_overlaps(controller);
        arm_daemonset_timer(controller);
        daemonset_controller_clear_observed(controller);
        controller->config.on_changed(controller->config.userdata);
        controller->desired = NULL;
}

int daemonset_controller_add_pods(const DesiredDaemonSets *sets, DesiredPods *desired,
                                  void *userdata) {
        DaemonSetController *controller = userdata;

        begin_daemonset_sync(controller, desired);
        for (size_t i = 0; i < sets->n; i++)
                sync_daemonset_or_keep_pods(controller, &sets->items[i].source, sets->items[i].set);
        end_daemonset_sync(controller);
        return controller->has_failed ? -ENOMEM : 0;
}

char *const *daemonset_controller_warnings(void *userdata) {
        return ((DaemonSetController *) userdata)->warnings;
}

/* By itself: it was evicted, or could not be what it is for some other reason. */
static bool has_set_pod_terminated(const DaemonSetController *controller, const Pod *pod) {
        cleanup_with(pod_status_done) PodStatus status = { 0 };

        return pod_manager_pod_status(controller->config.pod_manager, pod->metadata.uid, &pod,
                                      &status) >= 0 &&
               (status.phase == POD_FAILED || status.phase == POD_SUCCEEDED) &&
               status.deletion_time == 0;
}

/* Why a set that is desired does not want one of its pods. */
static char *explain_daemonset_plan(const DaemonSetController *controller,
                                    const DaemonSetState *state, const Pod *pod) {
        const ObjectMeta *set = &state->set->metadata;
        const char *hash = daemonset_history_desired(&state->history);
        const ControllerRevision *revision = daemonset_history_find(&state->history, hash);
        bool is_current =
                streq_ptr(string_map_get(&pod->metadata.labels, revision_hash_label), hash);
        char *reason;
        int n;

        if (state->decision.verdict == DAEMONSET_SHOULD_STOP)
                n = asprintf(&reason, "DaemonSet %s/%s no longer selects this node: %s",
                             set->namespace, set->name, strna(state->decision.why));
        else if (!is_current && revision)
                n = asprintf(&reason, "replaced by revision %" PRId64 " of DaemonSet %s/%s",
                             revision->number, set->namespace, set->name);
        else if (has_set_pod_terminated(controller, pod))
                n = asprintf(&reason, "it has terminated, and DaemonSet %s/%s replaces it",
                             set->namespace, set->name);
        else
                n = asprintf(&reason, "DaemonSet %s/%s has another pod on this node",
                             set->namespace, set->name);
        return n < 0 ? NULL : reason;
}

char *daemonset_controller_explain_stop(const PodSource *source, const Pod *pod, void *userdata) {
        DaemonSetController *controller = userdata;
        const OwnerReference *owner = object_controller(&pod->metadata);
        const DaemonSetState *state =
                owner ? daemonset_controller_find_uid(controller, owner->uid) : NULL;
        char *reason;

        if (!state || state->history.is_orphaning)
                return NULL;
        if (daemonset_state_is_desired(controller, state))
                return explain_daemonset_plan(controller, state, pod);
        if (!state->is_removed)
                return NULL; /* not known what the source has of it */
        return asprintf(&reason, "DaemonSet %s/%s was removed", strna(state->history.namespace),
                        strna(state->history.name)) < 0
                       ? NULL
                       : reason;
}

void daemonset_controller_on_pod(DaemonSetController *controller, const Pod *pod, bool is_new,
                                 bool is_gone) {
        const OwnerReference *owner = object_controller(&pod->metadata);
        DaemonSetState *state =
                owner ? daemonset_controller_find_uid(controller, owner->uid) : NULL;

        if (state && state->is_create_pending && is_new &&
            streq(pod->metadata.name, state->pod->metadata.name)) {
                state->is_create_pending = false;
                daemonset_state_record_event(controller, state, POD_EVENT_NORMAL,
                                             "SuccessfulCreate", "Created pod: %s",
                                             pod->metadata.name);
        }
        if ((state && (is_gone || !state->plan.is_settled || state->history.rollout_since > 0 ||
                       has_set_pod_terminated(controller, pod))) ||
            controller->has_undesired || (controller->has_peer_affinity && (is_new || is_gone)))
                daemonset_controller_schedule_sync(controller);
        if (state)
                controller->config.on_changed(controller->config.userdata);
}

void daemonset_controller_images_changed(DaemonSetController *controller) {
        for (DaemonSetState *state = controller->sets; state; state = state->next)
                if (state->preflight) {
                        preflight_retry(state->preflight);
                        daemonset_controller_schedule_sync(controller);
                }
}
