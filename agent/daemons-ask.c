/* SPDX-License-Identifier: Apache-2.0 */

/* What people ask of the sets, and what they ask them to do. */

#include "agent/daemons-private.h"
#include "agent/model/json.h"
#include "agent/model/schema.h"
#include "agent/origins.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

static Daemon *find(Daemons *daemons, const char *namespace, const char *name, Error *reterr) {
        Daemon *daemon = daemons_find(daemons, namespace, name);

        if (!daemon)
                (void) error_setf(reterr, ENOENT, "daemonsets.apps \"%s\" not found", name);
        return daemon;
}

/* ---- lists ---- */

static DaemonSetStatus status_of(const Daemon *daemon, const char *source) {
        const DaemonHistory *history = &daemon->history;
        const Revision *wanted = history_find(history, history_wanted(history));
        bool runs_here = daemon->decision.verdict == DAEMON_RUN;

        return (DaemonSetStatus){
                .created = history->created,
                .revision = wanted ? wanted->number : 0,
                .desired = runs_here,
                .current = runs_here && daemon->n_current > 0,
                .misscheduled = !runs_here && daemon->n_current > 0,
                .ready = runs_here && daemon->n_ready > 0,
                .updated = runs_here && daemon->n_updated > 0,
                .available = runs_here && daemon->n_available > 0,
                .runs_here = runs_here,
                .rule = daemon->decision.rule,
                .why = daemon->decision.why,
                .is_complete = daemon->plan.is_settled,
                .is_rolled_back = history->pin_reason && strncmp(history->pin_reason, ROLLED_BACK,
                                                                 strlen(ROLLED_BACK)) == 0,
                .rollback = daemon->trouble ? daemon->trouble : history->pin_reason,
                .source = source,
        };
}

static int compare_daemons(const void *a, const void *b) {
        const ObjectMeta *x = &(*(Daemon *const *) a)->set->metadata;
        const ObjectMeta *y = &(*(Daemon *const *) b)->set->metadata;
        int r = strcmp(x->namespace, y->namespace);

        return r != 0 ? r : strcmp(x->name, y->name);
}

/* All that are wished for, sorted; the caller frees the array. */
static Daemon **sort_daemons(Daemons *daemons, size_t *ret_n) {
        Daemon **sorted;
        size_t n = 0;

        for (Daemon *daemon = daemons->list; daemon; daemon = daemon->next)
                n++;
        sorted = calloc(n + 1, sizeof(*sorted));
        n = 0;
        for (Daemon *daemon = daemons->list; sorted && daemon; daemon = daemon->next)
                if (daemon_is_named(daemons, daemon))
                        sorted[n++] = daemon;
        if (n > 1)
                qsort(sorted, n, sizeof(*sorted), compare_daemons);
        *ret_n = n;
        return sorted;
}

int daemons_each(Daemons *daemons, daemons_each_t each, void *context) {
        cleanup_free Daemon **sorted = NULL;
        size_t n;
        int r = daemons_look(daemons);

        daemons_forget_seen(daemons);
        sorted = r >= 0 ? sort_daemons(daemons, &n) : NULL;
        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n && r >= 0; i++) {
                cleanup_free char *source = origin_of_set(sorted[i]->origin);
                const DaemonSetStatus status = status_of(sorted[i], source);
                cleanup_free char *json = daemonset_to_json(sorted[i]->set, &status);

                r = json && source ? each(sorted[i]->set, json, context) : -ENOMEM;
        }
        return r;
}

static bool print_revisions(const Daemon *daemon, bool is_first, FILE *out) {
        for (size_t i = 0; i < daemon->history.revisions.n; i++) {
                const Revision *revision = &daemon->history.revisions.items[i];
                cleanup_free char *json =
                        revision_to_json(daemon->set, revision->hash, revision->number,
                                         revision->created, revision->cause, revision->template);

                if (!json)
                        return false;
                fprintf(out, "%s%s", is_first ? "" : ",", json);
                is_first = false;
        }
        return true;
}

char *daemons_revisions_to_json(Daemons *daemons) {
        cleanup_free Daemon **sorted = NULL;
        bool is_good;
        char *text = NULL;
        size_t length, n;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        sorted = sort_daemons(daemons, &n);
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

static int store_and_schedule(Daemons *daemons, Daemon *daemon, Error *reterr) {
        int r = daemon_store(daemons, daemon, reterr);

        daemons_schedule(daemons);
        return r;
}

/* The revision to go to; 0 is the one before the one that is wanted. */
static const Revision *choose_revision(const DaemonHistory *history, int64_t number,
                                       Error *reterr) {
        const Revision *revision = NULL;

        if (number > 0)
                revision = history_find_number(history, number);
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

int daemons_undo(Daemons *daemons, const char *namespace, const char *name, int64_t revision,
                 Error *reterr) {
        Daemon *daemon = find(daemons, namespace, name, reterr);
        const Revision *chosen =
                daemon ? choose_revision(&daemon->history, revision, reterr) : NULL;
        cleanup_free char *reason = NULL;
        int r;

        if (!chosen)
                return -ENOENT;
        if (streq(chosen->hash, history_wanted(&daemon->history)))
                return 1;
        if (asprintf(&reason, "Undone: revision %" PRId64 " is wanted until %s changes",
                     chosen->number, daemon->origin) < 0) {
                reason = NULL;
                return -ENOMEM;
        }
        daemons->now = steady_now_usec(daemons->config.clock);
        r = history_pin(&daemon->history, chosen->hash, NULL, reason, daemons->now);
        return r < 0 ? r : store_and_schedule(daemons, daemon, reterr);
}

int daemons_restart(Daemons *daemons, const char *namespace, const char *name, Error *reterr) {
        Daemon *daemon = find(daemons, namespace, name, reterr);
        char now[RFC3339_SIZE], hash[REVISION_HASH_SIZE];
        cleanup_free char *json = NULL, *reason = NULL;
        Pod template = { 0 };
        int r;

        if (!daemon)
                return -ENOENT;
        daemons->now = steady_now_usec(daemons->config.clock);
        r = daemon_read_template(daemon, history_wanted(&daemon->history), &template);
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
        r = history_pin(&daemon->history, hash, json, reason, daemons->now);
        return r < 0 ? r : store_and_schedule(daemons, daemon, reterr);
}

const char *daemons_origin(Daemons *daemons, const char *namespace, const char *name,
                           Error *reterr) {
        Daemon *daemon = find(daemons, namespace, name, reterr);

        return daemon ? daemon->origin : NULL;
}
