/* SPDX-License-Identifier: Apache-2.0 */

/* What people ask of the sets, and what they ask them to do. */

#include "agent/daemonset/controller-private.h"
#include "agent/model/json.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

static DaemonSetState *find_daemonset_or_error(DaemonSetController *controller,
                                               const char *namespace, const char *name,
                                               Error *reterr) {
        DaemonSetState *state = daemonset_controller_find(controller, namespace, name);

        if (!state)
                (void) error_setf(reterr, ENOENT, "daemonsets.apps \"%s\" not found", name);
        return state;
}

/* ---- lists ---- */

static DaemonSetStatus describe_daemonset_status(const DaemonSetState *state, const char *source) {
        const DaemonSetHistory *history = &state->history;
        const ControllerRevision *wanted =
                daemonset_history_find(history, daemonset_history_desired(history));
        bool runs_here = state->decision.verdict == DAEMONSET_SHOULD_RUN;

        return (DaemonSetStatus){
                .created = history->created,
                .revision = wanted ? wanted->number : 0,
                .desired = runs_here,
                .current = runs_here && state->n_current > 0,
                .misscheduled = !runs_here && state->n_current > 0,
                .ready = runs_here && state->n_ready > 0,
                .updated = runs_here && state->n_updated > 0,
                .available = runs_here && state->n_available > 0,
                .runs_here = runs_here,
                .rule = state->decision.rule,
                .why = state->decision.why,
                .is_complete = state->plan.is_settled,
                .is_rolled_back =
                        history->pin_reason && strncmp(history->pin_reason, ROLLED_BACK_PREFIX,
                                                       strlen(ROLLED_BACK_PREFIX)) == 0,
                .rollback = state->last_error ? state->last_error : history->pin_reason,
                .source = source,
        };
}

static int compare_daemonset_names(const void *a, const void *b) {
        const ObjectMeta *x = &(*(DaemonSetState *const *) a)->set->metadata;
        const ObjectMeta *y = &(*(DaemonSetState *const *) b)->set->metadata;
        int r = strcmp(x->namespace, y->namespace);

        return r != 0 ? r : strcmp(x->name, y->name);
}

/* All that are wished for, sorted; the caller frees the array. */
static DaemonSetState **sort_daemonsets(DaemonSetController *controller, size_t *ret_n) {
        DaemonSetState **sorted;
        size_t n = 0;

        for (DaemonSetState *state = controller->sets; state; state = state->next)
                n++;
        sorted = calloc(n + 1, sizeof(*sorted));
        n = 0;
        for (DaemonSetState *state = controller->sets; sorted && state; state = state->next)
                if (daemonset_state_is_desired(controller, state))
                        sorted[n++] = state;
        if (n > 1)
                qsort(sorted, n, sizeof(*sorted), compare_daemonset_names);
        *ret_n = n;
        return sorted;
}

int daemonset_controller_each(DaemonSetController *controller, daemonset_controller_each_t each,
                              void *context) {
        cleanup_free DaemonSetState **sorted = NULL;
        size_t n;
        int r = daemonset_controller_update_counts(controller);

        daemonset_controller_clear_observed(controller);
        sorted = r >= 0 ? sort_daemonsets(controller, &n) : NULL;
        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n && r >= 0; i++) {
                cleanup_free char *source = print_daemonset_source(&sorted[i]->source);
                const DaemonSetStatus status = describe_daemonset_status(sorted[i], source);
                cleanup_free char *json = daemonset_to_json(sorted[i]->set, &status);

                r = json && source ? each(sorted[i]->set, json, context) : -ENOMEM;
        }
        return r;
}

static bool print_revisions(const DaemonSetState *state, bool is_first, FILE *out) {
        for (size_t i = 0; i < state->history.revisions.n; i++) {
                const ControllerRevision *revision = &state->history.revisions.items[i];
                cleanup_free char *json =
                        revision_to_json(state->set, revision->hash, revision->number,
                                         revision->created, revision->cause, revision->template);

                if (!json)
                        return false;
                fprintf(out, "%s%s", is_first ? "" : ",", json);
                is_first = false;
        }
        return true;
}

char *daemonset_controller_list_revisions(DaemonSetController *controller) {
        cleanup_free DaemonSetState **sorted = NULL;
        bool is_good;
        char *text = NULL;
        size_t length, n;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        sorted = sort_daemonsets(controller, &n);
        is_good = sorted;
        fprintf(out, "{\"kind\":\"ControllerRevisionList\",\"apiVersion\":\"apps/v1\","
                     "\"metadata\":{},\"items\":[");
        for (size_t i = 0; is_good && i < n; i++)
                is_good = print_revisions(sorted[i], i == 0, out);
        fprintf(out, "]}\n");
        text = memstream_finish(out, &text);
        if (!is_good) {
                free(text);
                return NULL;
        }
        return text;
}

/* ---- orders ---- */

static int store_and_schedule_sync(DaemonSetController *controller, DaemonSetState *state,
                                   Error *reterr) {
        int r = daemonset_state_store(controller, state, reterr);

        daemonset_controller_schedule_sync(controller);
        return r;
}

/* The revision to go to; 0 is the one before the one that is wanted. */
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

int daemonset_controller_undo_rollout(DaemonSetController *controller, const char *namespace,
                                      const char *name, int64_t revision, Error *reterr) {
        DaemonSetState *state = find_daemonset_or_error(controller, namespace, name, reterr);
        const ControllerRevision *chosen =
                state ? choose_revision(&state->history, revision, reterr) : NULL;
        cleanup_free char *reason = NULL;
        int r;

        if (!chosen)
                return -ENOENT;
        if (streq(chosen->hash, daemonset_history_desired(&state->history)))
                return 1;
        if (asprintf(&reason, "Undone: revision %" PRId64 " is wanted until %s changes",
                     chosen->number, pod_source_format(&state->source)) < 0) {
                reason = NULL;
                return -ENOMEM;
        }
        controller->now = steady_now_usec(controller->config.clock);
        r = daemonset_history_pin(&state->history, chosen->hash, NULL, reason, controller->now);
        return r < 0 ? r : store_and_schedule_sync(controller, state, reterr);
}

int daemonset_controller_restart_rollout(DaemonSetController *controller, const char *namespace,
                                         const char *name, Error *reterr) {
        DaemonSetState *state = find_daemonset_or_error(controller, namespace, name, reterr);
        char now[RFC3339_SIZE], hash[REVISION_HASH_SIZE];
        cleanup_free char *json = NULL, *reason = NULL;
        Pod template = { 0 };
        int r;

        if (!state)
                return -ENOENT;
        controller->now = steady_now_usec(controller->config.clock);
        r = daemonset_state_read_template(state, daemonset_history_desired(&state->history),
                                          &template);
        if (r >= 0)
                r = string_map_set(&template.metadata.annotations,
                                   "kubectl.kubernetes.io/restartedAt",
                                   format_rfc3339_nano(now, now_realtime_usec()));
        if (r >= 0)
                r = daemonset_revision_hash(&template, hash);
        json = r >= 0 ? object_to_json(&pod_template_schema, &template) : NULL;
        schema_done(&pod_template_schema, &template);
        if (!json || asprintf(&reason, "Restarted at %s", now) < 0) {
                reason = NULL;
                return r < 0 ? r : -ENOMEM;
        }
        r = daemonset_history_pin(&state->history, hash, json, reason, controller->now);
        return r < 0 ? r : store_and_schedule_sync(controller, state, reterr);
}

const PodSource *daemonset_controller_find_source(DaemonSetController *controller,
                                                  const char *namespace, const char *name,
                                                  Error *reterr) {
        DaemonSetState *state = find_daemonset_or_error(controller, namespace, name, reterr);

        return state ? &state->source : NULL;
}
