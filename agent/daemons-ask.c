/* SPDX-License-Identifier: Apache-2.0 */

/* What people ask of the sets, and what they ask them to do. */

#include "agent/daemons-private.h"
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

static Daemon *find(Daemons *daemons, const char *namespace, const char *name, Error *reterr) {
        Daemon *daemon = daemons_find(daemons, namespace, name);

        if (!daemon)
                (void) error_setf(reterr, ENOENT, "daemonsets.apps \"%s\" not found", name);
        return daemon;
}

/* ---- lists ---- */

static DaemonSetStatus status_of(const Daemon *daemon) {
        const DaemonHistory *history = &daemon->history;
        const Revision *wanted = history_find(history, history_wanted(history));
        bool runs_here = daemon->decision.verdict == DAEMON_RUN;

        return (DaemonSetStatus){
                .created = history->created,
                .revision = wanted ? wanted->number : 0,
                .desired = runs_here,
                .current = runs_here ? MIN(daemon->n_current, 1) : 0,
                .misscheduled = runs_here ? 0 : daemon->n_current > 0,
                .ready = runs_here ? daemon->n_ready > 0 : 0,
                .updated = runs_here ? daemon->n_updated > 0 : 0,
                .available = runs_here && daemon->n_available > 0,
                .runs_here = runs_here,
                .rule = daemon->decision.rule,
                .why = daemon->decision.why,
                .is_complete = daemon->plan.is_settled,
                .rollback = daemon->trouble ? daemon->trouble : history->pin_reason,
                .file = daemon->file,
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
                if (daemon->set)
                        sorted[n++] = daemon;
        if (n > 1)
                qsort(sorted, n, sizeof(*sorted), compare_daemons);
        *ret_n = n;
        return sorted;
}

static bool print_set(const Daemon *daemon, bool is_first, FILE *out) {
        const DaemonSetStatus status = status_of(daemon);
        cleanup_free char *json = daemonset_to_json(daemon->set, &status);

        fprintf(out, "%s%s", is_first ? "" : ",", strna(json));
        return json;
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

static char *print_list(Daemons *daemons, const char *kind,
                        bool (*print)(const Daemon *, bool, FILE *)) {
        cleanup_free Daemon **sorted = NULL;
        bool is_good;
        char *text = NULL;
        size_t length, n;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        sorted = sort_daemons(daemons, &n);
        is_good = sorted && daemons_look(daemons) >= 0;
        fprintf(out, "{\"kind\":\"%s\",\"apiVersion\":\"apps/v1\",\"metadata\":{},\"items\":[",
                kind);
        for (size_t i = 0; i < n && is_good; i++)
                is_good = print(sorted[i], i == 0, out);
        fprintf(out, "]}\n");
        text = memstream_finish(out, &text);
        if (!is_good) {
                free(text);
                return NULL;
        }
        return text;
}

char *daemons_to_json(Daemons *daemons) {
        return print_list(daemons, "DaemonSetList", print_set);
}

char *daemons_revisions_to_json(Daemons *daemons) {
        return print_list(daemons, "ControllerRevisionList", print_revisions);
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
                     chosen->number, daemon->file) < 0) {
                reason = NULL;
                return -ENOMEM;
        }
        daemons->now = now_realtime_usec();
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
        daemons->now = now_realtime_usec();
        r = daemon_read_template(daemon, history_wanted(&daemon->history), &template);
        if (r >= 0)
                r = string_map_set(&template.metadata.annotations,
                                   "kubectl.kubernetes.io/restartedAt",
                                   format_rfc3339_nano(now, daemons->now));
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

int daemons_orphan(Daemons *daemons, const char *namespace, const char *name, Error *reterr) {
        Daemon *daemon = find(daemons, namespace, name, reterr);
        int r = daemon ? daemons_look(daemons) : -ENOENT;

        for (size_t i = 0; r >= 0 && i < daemons->n_seen; i++) {
                const SeenPod *seen = &daemons->seen[i];
                const OwnerReference *owner = object_controller(&seen->pod->metadata);
                cleanup_with(pod_freep) Pod *copy = NULL;

                if (seen->is_ending || !owner || !streq(owner->uid, daemon->uid))
                        continue;
                r = pod_copy(seen->pod, &copy);
                if (r >= 0)
                        r = daemonset_own_pod(NULL, copy);
                if (r >= 0)
                        r = daemons_take_orphan(daemons, copy);
        }
        if (r >= 0)
                daemon->is_deleted = true;
        return r;
}

const char *daemons_file(Daemons *daemons, const char *namespace, const char *name, Error *reterr) {
        Daemon *daemon = find(daemons, namespace, name, reterr);

        return daemon ? daemon->file : NULL;
}
