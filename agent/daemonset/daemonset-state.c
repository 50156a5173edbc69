/* SPDX-License-Identifier: Apache-2.0 */

/* The data of one DaemonSet: its desired state, its status for 'mainstay get', and the rollout
 * requests undo and restart. It starts and stops no pods; daemonset-sync.c does. */

#include "agent/daemonset/daemonset-state.h"

#include "agent/daemonset/checkpoint.h"
#include "agent/daemonset/daemonset-state-private.h"
#include "agent/manifest/manifest.h"
#include "agent/model/json.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

int daemonset_state_new(const char *uid, DaemonSetState **ret) {
        cleanup_with(daemonset_state_freep) DaemonSetState *state = calloc(1, sizeof(*state));

        if (!state)
                return -ENOMEM;
        state->uid = strdup(uid);
        if (!state->uid)
                return -ENOMEM;
        *ret = TAKE_PTR(state);
        return 0;
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

DaemonSetState *daemonset_state_free(DaemonSetState *state) {
        if (!state)
                return NULL;
        daemonset_history_done(&state->history);
        daemonset_decision_done(&state->decision);
        daemonset_refusal_done(&state->refusal);
        daemonset_free(state->set);
        daemonset_state_forget_pod(state);
        pod_source_done(&state->source);
        free(state->uid);
        free(state);
        return NULL;
}

/* If the clock was set back, a checkpoint may contain a future time. */
void daemonset_state_restore_take(DaemonSetState *state, DaemonSetHistory *history, DaemonSet *set,
                                  uint64_t now) {
        state->history = *history;
        state->history.rollout_since = MIN(history->rollout_since, now);
        state->set = set;
        *history = (DaemonSetHistory){ 0 };
}

const char *daemonset_state_uid(const DaemonSetState *state) {
        return state->uid;
}

const DaemonSet *daemonset_state_set(const DaemonSetState *state) {
        return state->set;
}

const PodSource *daemonset_state_source(const DaemonSetState *state) {
        return &state->source;
}

const DaemonSetHistory *daemonset_state_history(const DaemonSetState *state) {
        return &state->history;
}

/* ---- desired or not ---- */

static int replace_daemonset_source(DaemonSetState *state, const PodSource *source) {
        PodSource copy;

        if (pod_sources_equal(&state->source, source))
                return 0;
        if (pod_source_copy(source, &copy) < 0)
                return -ENOMEM;
        pod_source_done(&state->source);
        state->source = copy;
        state->has_changed = true;
        return 0;
}

static int replace_daemonset_spec(DaemonSetState *state, const DaemonSet *set) {
        cleanup_with(daemonset_freep) DaemonSet *copy = NULL;

        if (state->set && schema_equal(&daemonset_schema, state->set, set))
                return 0;
        if (daemonset_copy(set, &copy) < 0)
                return -ENOMEM;
        daemonset_free(state->set);
        state->set = TAKE_PTR(copy);
        daemonset_state_forget_pod(state);
        state->has_changed = true;
        state->history.is_orphaning = false; /* the manifest was written again */
        return 0;
}

/* The UID of a set in a manifest is computed from its name, but a set with the same name from
 * another source is unrelated. The revisions of the other set are dropped, so that neither a
 * rollback nor an undo restores its templates. */
static int forget_foreign_history(DaemonSetState *state, const PodSource *source) {
        cleanup_with(pod_source_done) PodSource recorded = { 0 };

        if (!state->history.source)
                return 0;
        if (pod_source_parse(state->history.source, &recorded) < 0)
                return -ENOMEM;
        if (pod_source_origin(&recorded) == pod_source_origin(source))
                return 0;
        daemonset_history_done(&state->history);
        daemonset_state_drop_set(state);
        state->is_removed = false;
        state->current_ready = (PodReadyTime){ 0 };
        state->back_off = (FailedPodsBackOff){ 0 };
        state->plan = (DaemonSetPlan){ 0 };
        return 0;
}

int daemonset_state_set_desired(DaemonSetState *state, const PodSource *source,
                                const DaemonSet *set, unsigned generation) {
        int r;

        r = forget_foreign_history(state, source);
        if (r < 0)
                return r;
        state->is_removed = false;
        r = replace_daemonset_source(state, source);
        if (r < 0)
                return r;
        r = replace_daemonset_spec(state, set);
        if (r < 0)
                return r;
        state->generation = generation;
        return 0;
}

bool daemonset_state_is_desired(const DaemonSetState *state, unsigned generation) {
        return state->set && state->generation == generation;
}

void daemonset_state_drop_set(DaemonSetState *state) {
        state->is_removed = state->is_removed || state->set;
        daemonset_state_forget_pod(state);
        state->set = daemonset_free(state->set);
}

/* ---- orphaning ---- */

bool daemonset_state_is_orphaning(const DaemonSetState *state) {
        return state->history.is_orphaning;
}

int daemonset_state_store_orphaning(DaemonSetState *state, const char *state_dir, Error *reterr) {
        int r;

        state->history.is_orphaning = true;
        r = daemonset_checkpoint_store(state_dir, state->uid, &state->history, reterr);
        state->history.is_orphaning = r >= 0;
        return r;
}

void daemonset_state_clear_orphaning(DaemonSetState *state, const char *state_dir) {
        state->history.is_orphaning = false;
        daemonset_checkpoint_store_or_log(state_dir, state->uid, &state->history);
}

/* ---- status ---- */

static bool is_automatic_rollback(const DaemonSetHistory *history) {
        return history->pin_reason &&
               strncmp(history->pin_reason, ROLLED_BACK_PREFIX, strlen(ROLLED_BACK_PREFIX)) == 0;
}

bool daemonset_state_is_rolled_out(const DaemonSetState *state) {
        if (state->decision.verdict != DAEMONSET_SHOULD_RUN)
                return true;
        return state->plan.is_settled && state->plan.is_available &&
               !is_automatic_rollback(&state->history);
}

char *daemonset_state_to_json(const DaemonSetState *state) {
        cleanup_free char *source = print_daemonset_source(&state->source);
        const DaemonSetHistory *history = &state->history;
        const ControllerRevision *desired =
                daemonset_history_find(history, daemonset_history_desired(history));
        bool runs_here = state->decision.verdict == DAEMONSET_SHOULD_RUN;
        const DaemonSetStatus status = {
                .created = history->created,
                .revision = desired ? desired->number : 0,
                .desired = runs_here,
                .current = runs_here && state->counts.n_current > 0,
                .misscheduled = !runs_here && state->counts.n_current > 0,
                .ready = runs_here && state->counts.n_ready > 0,
                .updated = runs_here && state->counts.n_updated > 0,
                .available = runs_here && state->counts.n_available > 0,
                .runs_here = runs_here,
                .rule = state->decision.rule,
                .why = state->decision.why,
                .is_complete = state->plan.is_settled,
                .is_rolled_back = is_automatic_rollback(history),
                .rollback = state->last_error ? state->last_error : history->pin_reason,
                .source = source,
                .is_of_api = state->source.kind == POD_SOURCE_APISERVER_DAEMONSET,
                .is_refused = runs_here && state->is_refused,
                .refusal_reason = state->refusal.reason,
                .refusal = state->refusal.message,
        };

        return source ? daemonset_to_json(state->set, &status) : NULL;
}

int daemonset_state_each_revision(const DaemonSetState *state,
                                  int (*each)(const char *key, const char *json, void *context),
                                  void *context) {
        const ObjectMeta *metadata = &state->set->metadata;
        cleanup_free char *source = print_daemonset_source(&state->source);
        int r = source ? 0 : -ENOMEM;

        for (size_t i = 0; i < state->history.revisions.n && r >= 0; i++) {
                const ControllerRevision *revision = &state->history.revisions.items[i];
                cleanup_free char *key = NULL, *json = NULL;

                json = revision_to_json(state->set, revision->hash, revision->number,
                                        revision->created, revision->cause, revision->template,
                                        source);
                key = text_format("%s/%s-%s", metadata->namespace, metadata->name, revision->hash);
                r = key && json ? each(key, json, context) : -ENOMEM;
        }
        return r;
}

/* ---- rollout requests ---- */

int daemonset_state_read_template(const DaemonSetState *state, const char *hash, Pod *ret) {
        const ControllerRevision *revision = daemonset_history_find(&state->history, hash);

        if (!revision)
                return -ENOENT;
        return manifest_parse_template(revision->template, strlen(revision->template), ret, NULL);
}

/* The revision to roll back to; 0: the previous one. */
static const ControllerRevision *choose_revision(const DaemonSetHistory *history, int64_t number,
                                                 Error *reterr) {
        const ControllerRevision *revision = NULL;

        if (number > 0)
                revision = daemonset_history_find_number(history, number);
        else if (history->revisions.n > 1)
                revision = &history->revisions.items[history->revisions.n - 2];
        if (revision)
                return revision;
        if (number > 0)
                (void) error_setf(reterr, ENOENT,
                                  "unable to find specified revision %" PRId64 " in history",
                                  number);
        else
                (void) error_setf(reterr, ENOENT, "no rollout history found for daemonset \"%s\"",
                                  history->name);
        return NULL;
}

int daemonset_state_undo_rollout(DaemonSetState *state, int64_t revision, uint64_t now,
                                 Error *reterr) {
        const ControllerRevision *chosen = choose_revision(&state->history, revision, reterr);
        cleanup_free char *reason = NULL;

        if (!chosen)
                return -ENOENT;
        if (streq(chosen->hash, daemonset_history_desired(&state->history)))
                return 1;
        reason = text_format("Undone: revision %" PRId64 " is desired until %s changes",
                             chosen->number, pod_source_describe(&state->source));
        if (!reason)
                return -ENOMEM;
        return daemonset_history_pin(&state->history, chosen->hash, NULL, reason, now);
}

static int write_restarted_template(Pod *template, const char *restarted_at,
                                    char hash[REVISION_HASH_SIZE], char **ret_json) {
        int r = string_map_set(&template->metadata.annotations, "kubectl.kubernetes.io/restartedAt",
                               restarted_at);

        if (r < 0)
                return r;
        r = daemonset_revision_hash(template, hash);
        if (r < 0)
                return r;
        *ret_json = object_to_json(&pod_template_schema, template);
        return *ret_json ? 0 : -ENOMEM;
}

/* The template of the desired revision with kubectl's annotation, as JSON, and its hash. */
static int make_restarted_template(const DaemonSetState *state, const char *restarted_at,
                                   char hash[REVISION_HASH_SIZE], char **ret_json) {
        Pod template = { 0 };
        int r = daemonset_state_read_template(state, daemonset_history_desired(&state->history),
                                              &template);

        if (r >= 0)
                r = write_restarted_template(&template, restarted_at, hash, ret_json);
        schema_done(&pod_template_schema, &template);
        return r;
}

int daemonset_state_restart_rollout(DaemonSetState *state, uint64_t now) {
        char restarted_at[RFC3339_SIZE], hash[REVISION_HASH_SIZE];
        cleanup_free char *json = NULL, *reason = NULL;
        int r;

        format_rfc3339_nano(restarted_at, now_realtime_usec());
        r = make_restarted_template(state, restarted_at, hash, &json);
        if (r < 0)
                return r;
        reason = text_format("Restarted at %s", restarted_at);
        if (!reason)
                return -ENOMEM;
        return daemonset_history_pin(&state->history, hash, json, reason, now);
}

/* ---- dump ---- */

static const char *describe_daemonset_plan(const DaemonSetPlan *plan) {
        return plan->is_syncing         ? "waits for the state of its pods"
               : plan->creates_pod      ? "creates a pod"
               : plan->awaits_preflight ? "waits for the preflight of the new pod"
               : plan->is_settled       ? "settled"
                                        : "update under way";
}

/* Times are from the steady clock. */
static void dump_steady_due(FILE *out, const char *what, uint64_t at, uint64_t now) {
        char due[DUMP_DURATION_SIZE];

        if (at == 0)
                return;
        dump_line(out, 2, "timer: %s %s%s", what, at > now ? "in " : "",
                  at > now ? dump_format_duration(due, at - now) : "now");
}

void daemonset_state_dump(const DaemonSetState *state, uint64_t now, FILE *out) {
        static const char *const verdicts[N_DAEMONSET_VERDICTS] = {
                [DAEMONSET_SHOULD_RUN] = "should run",
                [DAEMONSET_SHOULD_CONTINUE] = "should continue",
                [DAEMONSET_SHOULD_STOP] = "should stop",
        };
        const DaemonSetHistory *history = &state->history;
        cleanup_free char *source = print_daemonset_source(&state->source);

        dump_line(out, 1, "DaemonSet: %s/%s, uid %s, source: %s%s", strna(history->namespace),
                  strna(history->name), state->uid, source ? source : "-",
                  state->set ? "" : ", not desired, pods remain");
        dump_line(out, 2, "decision: %s%s%s%s%s", verdicts[state->decision.verdict],
                  state->decision.rule ? " by " : "", strna(state->decision.rule),
                  state->decision.why ? ": " : "", strna(state->decision.why));
        dump_line(out, 2, "revision: %s%s, %zu revisions", daemonset_history_desired(history),
                  history->pinned[0] ? " (pinned)" : "", history->revisions.n);
        dump_line(out, 2, "plan: %s, %s", describe_daemonset_plan(&state->plan),
                  state->plan.is_available ? "available" : "not available");
        if (state->back_off.delay_usec > 0)
                dump_steady_due(out, "back-off of failed pods ends",
                                state->back_off.since + state->back_off.delay_usec, now);
        dump_steady_due(out, "plan changes", state->plan.again_at, now);
        if (state->preflight)
                dump_line(out, 2, "preflight: under way");
        if (state->last_error)
                dump_line(out, 2, "last error: %s", state->last_error);
}
