/* SPDX-License-Identifier: Apache-2.0 */

/* Nothing is remembered of an update under way: at each wish the pods that there are and the
 * revision that is wanted say what is due, as the plan has it. So an agent may die in the middle of
 * it, and the next one goes on. */

#include "agent/daemons.h"

#include "agent/daemons-private.h"
#include "agent/model/match.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/strv.h"

#include <inttypes.h>
#include <stdlib.h>

#define LAST_USEC        (10 * USEC_PER_SEC)
#define STAGE_RETRY_USEC (10 * USEC_PER_SEC)

const char orphan_file[] = "(no file)";

static const char hash_label[] = "controller-revision-hash";

Daemon *daemons_find_uid(Daemons *daemons, const char *uid) {
        for (Daemon *daemon = daemons->list; daemon; daemon = daemon->next)
                if (streq(daemon->uid, uid))
                        return daemon;
        return NULL;
}

Daemon *daemons_find(Daemons *daemons, const char *namespace, const char *name) {
        for (Daemon *daemon = daemons->list; daemon; daemon = daemon->next)
                if (daemon->set && streq(daemon->set->metadata.name, name) &&
                    streq(daemon->set->metadata.namespace, namespace))
                        return daemon;
        return NULL;
}

Daemon *daemons_add(Daemons *daemons, const char *uid) {
        Daemon *daemon = calloc(1, sizeof(*daemon));

        if (!daemon)
                return NULL;
        daemon->uid = strdup(uid);
        if (!daemon->uid) {
                free(daemon);
                return NULL;
        }
        daemon->next = daemons->list;
        daemons->list = daemon;
        return daemon;
}

static void forget_staging(Daemon *daemon) {
        daemon->staging = staging_free(daemon->staging);
        free(daemon->trouble);
        daemon->trouble = NULL;
}

static void forget_pod(Daemon *daemon) {
        forget_staging(daemon);
        daemon->pod = pod_free(daemon->pod);
}

void daemon_free(Daemon *daemon) {
        daemon_history_done(&daemon->history);
        daemon_decision_done(&daemon->decision);
        daemonset_free(daemon->set);
        forget_pod(daemon);
        free(daemon->file);
        free(daemon->uid);
        free(daemon);
}

static int on_due(sd_event_source *source, void *userdata) {
        Daemons *daemons = userdata;

        daemons->config.on_due(daemons->config.userdata);
        return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        return on_due(source, userdata);
}

void daemons_schedule(Daemons *daemons) {
        (void) sd_event_source_set_enabled(daemons->due_source, SD_EVENT_ONESHOT);
}

int daemons_new(const DaemonsConfig *config, Daemons **ret) {
        cleanup_with(daemons_freep) Daemons *daemons = calloc(1, sizeof(*daemons));
        int r;

        if (!daemons)
                return -ENOMEM;
        daemons->config = *config;
        r = sd_event_add_defer(config->event, &daemons->due_source, on_due, daemons);
        if (r >= 0)
                r = sd_event_source_set_enabled(daemons->due_source, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time(config->event, &daemons->timer, CLOCK_REALTIME, 0, 1,
                                      on_timer, daemons);
        if (r >= 0)
                r = sd_event_source_set_enabled(daemons->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(daemons);
        return 0;
}

static void forget_seen(Daemons *daemons) {
        free(daemons->seen);
        free(daemons->peers);
        daemons->seen = NULL;
        daemons->peers = NULL;
        daemons->n_seen = 0;
}

Daemons *daemons_free(Daemons *daemons) {
        if (!daemons)
                return NULL;
        while (daemons->list) {
                Daemon *daemon = daemons->list;

                daemons->list = daemon->next;
                daemon_free(daemon);
        }
        for (size_t i = 0; i < daemons->n_orphans; i++)
                pod_free(daemons->orphans[i]);
        free(daemons->orphans);
        forget_seen(daemons);
        strv_free(daemons->warnings);
        sd_event_source_disable_unref(daemons->due_source);
        sd_event_source_disable_unref(daemons->timer);
        free(daemons);
        return NULL;
}

int daemons_take_orphan(Daemons *daemons, const Pod *pod) {
        Pod **longer = reallocarray(daemons->orphans, daemons->n_orphans + 1, sizeof(*longer));

        if (!longer)
                return -ENOMEM;
        daemons->orphans = longer;
        if (pod_copy(pod, &longer[daemons->n_orphans]) < 0)
                return -ENOMEM;
        daemons->n_orphans++;
        return 0;
}

/* ---- what there is ---- */

static bool is_orphan(const Daemons *daemons, const Pod *pod) {
        for (size_t i = 0; i < daemons->n_orphans; i++)
                if (streq(daemons->orphans[i]->metadata.uid, pod->metadata.uid))
                        return true;
        return false;
}

static int see(const Pod *pod, const PodStatus *status, void *userdata) {
        Daemons *daemons = userdata;
        const PodCondition *ready = &status->conditions[CONDITION_READY];
        size_t n = daemons->n_seen;
        SeenPod *seen = reallocarray(daemons->seen, n + 1, sizeof(*seen));
        const Pod **peers;

        if (!seen)
                return -ENOMEM;
        daemons->seen = seen;
        peers = reallocarray(daemons->peers, n + 1, sizeof(*peers));
        if (!peers)
                return -ENOMEM;
        daemons->peers = peers;
        peers[n] = pod;
        seen[n] = (SeenPod){
                .pod = pod,
                .is_ending = status->deletion_time > 0,
                .is_ready = ready->is_true,
                .is_orphan = is_orphan(daemons, pod),
                .ready_since = ready->last_transition,
                .start_time = status->start_time,
        };
        daemons->n_seen++;
        return 0;
}

void daemons_begin(Daemons *daemons) {
        forget_seen(daemons);
        daemons->generation++;
        daemons->now = now_realtime_usec();
        daemons->again_at = 0;
        daemons->minds_peers = false;
        daemons->has_failed = supervisor_each(daemons->config.supervisor, see, daemons) < 0;
}

/* Its own, or one that nobody owns any more. */
static bool is_of(const Daemon *daemon, const SeenPod *seen) {
        const OwnerReference *owner = object_controller(&seen->pod->metadata);

        if (owner)
                return streq(owner->uid, daemon->uid);
        return seen->is_orphan && !seen->is_ending && daemonset_selects(daemon->set, seen->pod);
}

static void look_again_at(Daemons *daemons, uint64_t when) {
        if (when > 0 && (daemons->again_at == 0 || when < daemons->again_at))
                daemons->again_at = when;
}

/* ---- one set ---- */

static void forget_orphan(Daemons *daemons, const Pod *pod) {
        for (size_t i = 0; i < daemons->n_orphans; i++) {
                if (!streq(daemons->orphans[i]->metadata.uid, pod->metadata.uid))
                        continue;
                pod_free(daemons->orphans[i]);
                daemons->orphans[i] = daemons->orphans[--daemons->n_orphans];
                return;
        }
}

static void want(Daemons *daemons, const Daemon *daemon, const Pod *pod) {
        cleanup_error Error error = ERROR_NULL;
        int r = supervisor_want(daemons->config.supervisor, daemon->file, pod, &error);

        if (r < 0)
                log_error("%s: %s", daemon->file, error_message(&error, r));
        daemons->has_failed = daemons->has_failed || r == -ENOMEM;
}

/* One of those that are there goes on. An orphan is adopted by that. */
static int want_seen(Daemons *daemons, const Daemon *daemon, SeenPod *seen) {
        cleanup_with(pod_freep) Pod *copy = NULL;
        int r = pod_copy(seen->pod, &copy);

        if (r >= 0 && seen->is_orphan) {
                log_info("DaemonSet '%s/%s' adopts pod '%s'", daemon->set->metadata.namespace,
                         daemon->set->metadata.name, copy->metadata.name);
                r = daemonset_own_pod(daemon->set, copy);
        }
        if (r < 0)
                return r;
        want(daemons, daemon, copy);
        if (seen->is_orphan)
                forget_orphan(daemons, copy);
        seen->is_orphan = false;
        return 0;
}

typedef struct Own {
        SeenPod **seen; /* of the Daemons */
        DaemonPod *pods;
        bool *keep;
        size_t n;
} Own;

static void own_done(Own *own) {
        free(own->seen);
        free(own->pods);
        free(own->keep);
}

static int collect_own(Daemons *daemons, const Daemon *daemon, const char *hash, Own *own) {
        size_t n = daemons->n_seen + 1;

        own->seen = calloc(n, sizeof(*own->seen));
        own->pods = calloc(n, sizeof(*own->pods));
        own->keep = calloc(n, sizeof(*own->keep));
        if (!own->seen || !own->pods || !own->keep)
                return -ENOMEM;
        for (size_t i = 0; i < daemons->n_seen; i++) {
                SeenPod *seen = &daemons->seen[i];

                if (!is_of(daemon, seen))
                        continue;
                own->seen[own->n] = seen;
                own->pods[own->n++] = (DaemonPod){
                        .is_current = streq_ptr(
                                string_map_get(&seen->pod->metadata.labels, hash_label), hash),
                        .is_ending = seen->is_ending,
                        .is_ready = seen->is_ready,
                        .ready_since = seen->ready_since,
                        .start_time = seen->start_time,
                };
        }
        return 0;
}

static void count_own(Daemon *daemon, const Own *own) {
        daemon->n_current = daemon->n_updated = daemon->n_ready = daemon->n_available = 0;
        for (size_t i = 0; i < own->n; i++) {
                const DaemonPod *pod = &own->pods[i];

                if (pod->is_ending)
                        continue;
                daemon->n_current++;
                daemon->n_updated += pod->is_current;
                daemon->n_ready += pod->is_ready;
        }
        daemon->n_available = daemon->plan.is_available ? 1 : 0;
}

/* The pod is made when something of it is another: a thousand sets at each wish would take a while.
 */
static bool is_made(const Daemon *daemon, const Revision *revision) {
        char number[24];

        (void) snprintf(number, sizeof(number), "%" PRId64, revision->number);
        return daemon->pod &&
               streq(string_map_get(&daemon->pod->metadata.labels, hash_label), revision->hash) &&
               streq(string_map_get(&daemon->pod->metadata.labels, "pod-template-generation"),
                     number);
}

static int make_current(Daemons *daemons, Daemon *daemon) {
        const char *hash = history_wanted(&daemon->history);
        const Revision *revision = history_find(&daemon->history, hash);
        Pod template = { 0 };
        int r;

        if (!revision)
                return -ENOENT;
        if (is_made(daemon, revision))
                return 0;
        forget_pod(daemon);
        if (streq(hash, daemon->history.file_hash))
                return daemonset_make_pod(daemon->set, &daemon->set->spec.template, hash,
                                          revision->number, daemons->config.facts->name,
                                          &daemon->pod);
        r = daemon_read_template(daemon, hash, &template);
        if (r >= 0)
                r = daemonset_make_pod(daemon->set, &template, hash, revision->number,
                                       daemons->config.facts->name, &daemon->pod);
        schema_done(&pod_template_schema, &template);
        return r;
}

static int want_own(Daemons *daemons, Daemon *daemon, Own *own, const Pod *current) {
        bool wants_new = daemon->plan.wants_new;
        int r = 0;

        for (size_t i = 0; i < own->n && r >= 0; i++) {
                if (!own->keep[i])
                        continue;
                if (streq(own->seen[i]->pod->metadata.name, current->metadata.name)) {
                        wants_new = true; /* it is the same one */
                        forget_orphan(daemons, own->seen[i]->pod);
                } else
                        r = want_seen(daemons, daemon, own->seen[i]);
        }
        if (r >= 0 && wants_new)
                want(daemons, daemon, current);
        return r;
}

int daemons_look(Daemons *daemons) {
        int r;

        forget_seen(daemons);
        r = supervisor_each(daemons->config.supervisor, see, daemons);
        for (Daemon *daemon = daemons->list; daemon && r >= 0; daemon = daemon->next) {
                cleanup_with(own_done) Own own = { 0 };

                if (!daemon->set)
                        continue;
                r = collect_own(daemons, daemon, history_wanted(&daemon->history), &own);
                if (r >= 0)
                        count_own(daemon, &own);
        }
        return r;
}

void daemons_forget_orphan(Daemons *daemons, const char *namespace, const char *name) {
        for (size_t i = 0; i < daemons->n_orphans; i++) {
                Pod *pod = daemons->orphans[i];

                if (!streq(pod->metadata.name, name) || !streq(pod->metadata.namespace, namespace))
                        continue;
                pod_free(pod);
                daemons->orphans[i] = daemons->orphans[--daemons->n_orphans];
                return;
        }
}

static int64_t progress_deadline(const DaemonSet *set) {
        const char *text = string_map_get(&set->metadata.annotations,
                                          "mainstay.dev/progress-deadline-seconds");

        return text ? strtoll(text, NULL, 10) : 0;
}

/* A pod that dies at once is ready for a moment, too. Where somebody counts on being rolled back,
 * the revision has to last before it is called good. */
static bool has_lasted(Daemons *daemons, const Daemon *daemon) {
        uint64_t deadline = (uint64_t) MAX(progress_deadline(daemon->set), 0) * USEC_PER_SEC;
        uint64_t until = daemon->plan.ready_since + MIN(deadline / 2, LAST_USEC);

        if (!daemon->plan.is_available)
                return false;
        if (daemons->now >= until)
                return true;
        look_again_at(daemons, until);
        return false;
}

/* True where another revision is wanted now: the last good one. */
static bool roll_back(Daemons *daemons, Daemon *daemon) {
        DaemonHistory *history = &daemon->history;
        int64_t seconds = progress_deadline(daemon->set);
        const Revision *failed = history_find(history, history_wanted(history));
        uint64_t end = history->rollout_since + (uint64_t) seconds * USEC_PER_SEC;
        cleanup_free char *reason = NULL;

        if (seconds <= 0 || history->rollout_since == 0 || !history->good[0] || !failed ||
            daemon->decision.verdict != DAEMON_RUN || streq(history->good, failed->hash))
                return false;
        if (daemons->now < end) {
                look_again_at(daemons, end);
                return false;
        }
        if (asprintf(&reason, "Rolled back: revision %lld did not become available within %llds",
                     (long long) failed->number, (long long) seconds) < 0) {
                reason = NULL;
                return false;
        }
        log_warning("DaemonSet '%s/%s': %s", history->namespace, history->name, reason);
        return history_pin(history, history->good, NULL, reason, daemons->now) >= 0;
}

static void store(const Daemons *daemons, const Daemon *daemon) {
        cleanup_error Error error = ERROR_NULL;
        int r = daemon_store(daemons, daemon, &error);

        if (r < 0)
                log_error("%s", error_message(&error, r));
}

static void make_plan(const Daemons *daemons, Daemon *daemon, const Own *own, bool is_staged) {
        const DaemonPods pods = { own->pods, own->n };

        daemonset_plan(daemon->set, daemon->decision.verdict, &pods, is_staged, daemons->now,
                       own->keep, &daemon->plan);
}

static int plan_pods(Daemons *daemons, Daemon *daemon, Own *own) {
        const char *hash = history_wanted(&daemon->history);
        int r = collect_own(daemons, daemon, hash, own);

        if (r < 0)
                return r;
        make_plan(daemons, daemon, own, /* is_staged= */ false);
        return 0;
}

static void on_staging_news(void *userdata) {
        daemons_schedule(userdata);
}

static void set_trouble(Daemon *daemon, const char *sentence) {
        if (streq_ptr(daemon->trouble, sentence))
                return;
        free(daemon->trouble);
        daemon->trouble = sentence ? strdup(sentence) : NULL;
        if (sentence)
                log_warning("DaemonSet '%s/%s': its new pod could not begin, so the old one goes "
                            "on: %s",
                            daemon->set->metadata.namespace, daemon->set->metadata.name, sentence);
}

/* 1: the new pod could begin; 0: not yet; -ENOMEM. */
static int stage(Daemons *daemons, Daemon *daemon) {
        cleanup_error Error error = ERROR_NULL;
        int r = 0;

        if (!daemon->staging)
                r = supervisor_stage(daemons->config.supervisor, daemon->pod, on_staging_news,
                                     daemons, &daemon->staging);
        if (r >= 0)
                r = staging_step(daemon->staging, &error);
        set_trouble(daemon, r < 0 ? error_message(&error, r) : NULL);
        if (r >= 0 || r == -ENOMEM)
                return r;
        staging_retry(daemon->staging);
        look_again_at(daemons, daemons->now + STAGE_RETRY_USEC);
        return 0;
}

static int step(Daemons *daemons, Daemon *daemon) {
        cleanup_with(own_done) Own own = { 0 };
        int r = plan_pods(daemons, daemon, &own);
        bool has_proven = r >= 0 && has_lasted(daemons, daemon);

        if (has_proven && history_note_good(&daemon->history))
                store(daemons, daemon);
        if (r >= 0 && !has_proven && roll_back(daemons, daemon)) {
                store(daemons, daemon);
                own_done(&own);
                own = (Own){ 0 };
                r = plan_pods(daemons, daemon, &own);
        }
        if (r >= 0)
                r = make_current(daemons, daemon);
        if (r >= 0 && daemon->plan.stages)
                r = stage(daemons, daemon);
        if (r > 0)
                make_plan(daemons, daemon, &own, /* is_staged= */ true);
        if (r < 0)
                return r;
        if (!daemon->plan.stages && daemon->plan.is_available)
                forget_staging(daemon);
        count_own(daemon, &own);
        look_again_at(daemons, daemon->plan.again_at);
        return want_own(daemons, daemon, &own, daemon->pod);
}

static int decide(Daemons *daemons, Daemon *daemon) {
        const DaemonPeers peers = { daemons->peers, daemons->n_seen };
        const Affinity *affinity = daemon->set->spec.template.spec.affinity;
        DaemonDecision decision = { 0 };
        int r = daemonset_evaluate(daemon->set, daemons->config.facts, &peers, daemons->now,
                                   &decision);

        if (r < 0)
                return r;
        if (!streq_ptr(decision.why, daemon->decision.why))
                log_info("DaemonSet '%s/%s' %s here: %s", daemon->set->metadata.namespace,
                         daemon->set->metadata.name,
                         decision.verdict == DAEMON_RUN ? "runs" : "does not run", decision.why);
        daemon_decision_done(&daemon->decision);
        daemon->decision = decision;
        look_again_at(daemons, decision.until);
        daemons->minds_peers =
                daemons->minds_peers || decision.verdict == DAEMON_KEEP ||
                (affinity && (affinity->pod_affinity || affinity->pod_anti_affinity));
        return 0;
}

static int take_set(Daemon *daemon, const char *file, const DaemonSet *set) {
        DaemonSet *copy = NULL;
        char *file_copy = streq_ptr(daemon->file, file) ? NULL : strdup(file);

        if (file_copy) {
                free(daemon->file);
                daemon->file = file_copy;
        }
        if (!daemon->file)
                return -ENOMEM;
        if (daemon->set && schema_equal(&daemonset_schema, daemon->set, set))
                return 0;
        daemon->is_deleted = false; /* somebody wrote it anew */
        if (daemonset_copy(set, &copy) < 0)
                return -ENOMEM;
        daemonset_free(daemon->set);
        daemon->set = copy;
        forget_pod(daemon);
        daemon->has_changed = true;
        return 0;
}

static bool has_pods(const Daemons *daemons, const Daemon *daemon) {
        for (size_t i = 0; i < daemons->n_seen; i++) {
                const OwnerReference *owner = object_controller(&daemons->seen[i].pod->metadata);

                if (owner && streq(owner->uid, daemon->uid))
                        return true;
        }
        return false;
}

/* What cannot be decided on changes nothing. */
static int keep_pods(Daemons *daemons, const Daemon *daemon) {
        int r = 0;

        for (size_t i = 0; i < daemons->n_seen && r >= 0; i++) {
                SeenPod *seen = &daemons->seen[i];

                if (!seen->is_ending && object_controller(&seen->pod->metadata) &&
                    is_of(daemon, seen))
                        r = want_seen(daemons, daemon, seen);
        }
        return r;
}

/* While no agent looked the selector became another. The pods that there are stay as they are. */
static int keep_foreign(Daemons *daemons, Daemon *daemon) {
        if (!daemon->is_foreign)
                log_error("%s: daemonset %s/%s: spec.selector: field is immutable; its pods go on "
                          "as they are",
                          daemon->file, daemon->set->metadata.namespace,
                          daemon->set->metadata.name);
        daemon->is_foreign = true;
        return keep_pods(daemons, daemon);
}

static int consider(Daemons *daemons, const char *file, const DaemonSet *set) {
        Daemon *daemon = daemons_find_uid(daemons, set->metadata.uid);
        int r;

        if (!daemon)
                daemon = daemons_add(daemons, set->metadata.uid);
        r = daemon ? take_set(daemon, file, set) : -ENOMEM;
        if (r < 0)
                return r;
        daemon->generation = daemons->generation;
        if (daemon->is_deleted)
                return 0;
        r = daemon_check_selector(daemons, daemon, has_pods(daemons, daemon));
        if (r <= 0)
                return r < 0 ? r : keep_foreign(daemons, daemon);
        daemon->is_foreign = false;
        r = decide(daemons, daemon);
        if (r >= 0 && daemon->has_changed) {
                daemons->has_changed = true;
                r = daemon_note_template(daemons, daemon);
                daemon->has_changed = r < 0;
        }
        return r < 0 ? r : step(daemons, daemon);
}

int daemons_want(Daemons *daemons, const char *file, const DaemonSet *set) {
        int r = daemons->has_failed ? -ENOMEM : consider(daemons, file, set);

        if (r < 0 && r != -ENOMEM) {
                (void) log_error_errno(r, "Cannot decide on daemonset '%s/%s', its pods go on",
                                       set->metadata.namespace, set->metadata.name);
                r = keep_pods(daemons, daemons_find_uid(daemons, set->metadata.uid));
        }
        /* Who could not be decided on must not be taken for one who is not wanted. */
        daemons->has_failed = daemons->has_failed || r < 0;
        return daemons->has_failed ? -ENOMEM : 0;
}

/* ---- all sets ---- */

/* A set whose pods are there still may only be behind a file that is broken. */
static void forget_unnamed(Daemons *daemons) {
        for (Daemon **link = &daemons->list; *link;) {
                Daemon *daemon = *link;

                if (daemon->generation == daemons->generation || has_pods(daemons, daemon)) {
                        link = &daemon->next;
                        continue;
                }
                *link = daemon->next;
                daemons->has_changed = true;
                daemon_forget(daemons, daemon);
                daemon_free(daemon);
        }
}

static void warn_of_overlaps(Daemons *daemons) {
        if (!daemons->has_changed)
                return;
        daemons->has_changed = false;
        daemons->warnings = strv_free(daemons->warnings);
        for (const Daemon *a = daemons->list; a; a = a->next)
                for (const Daemon *b = a->next; b; b = b->next) {
                        const ObjectMeta *left = a->set ? &a->set->metadata : NULL;
                        const ObjectMeta *right = b->set ? &b->set->metadata : NULL;

                        if (!left || !right || !streq(left->namespace, right->namespace) ||
                            (!label_selector_matches(a->set->spec.selector,
                                                     &b->set->spec.template.metadata.labels) &&
                             !label_selector_matches(b->set->spec.selector,
                                                     &a->set->spec.template.metadata.labels)))
                                continue;
                        (void) strv_appendf(&daemons->warnings,
                                            "%s: daemonset %s/%s and daemonset %s/%s of %s: one's "
                                            "selector matches the pods of the other",
                                            b->file, right->namespace, right->name, left->namespace,
                                            left->name, a->file);
                }
}

static void want_orphans(Daemons *daemons) {
        for (size_t i = 0; i < daemons->n_orphans; i++) {
                cleanup_error Error error = ERROR_NULL;
                int r = supervisor_want(daemons->config.supervisor, orphan_file,
                                        daemons->orphans[i], &error);

                if (r < 0)
                        log_error("Pod '%s': %s", daemons->orphans[i]->metadata.name,
                                  error_message(&error, r));
                daemons->has_failed = daemons->has_failed || r == -ENOMEM;
        }
}

static void arm_timer(Daemons *daemons) {
        int r = 0;

        if (daemons->again_at == 0)
                (void) sd_event_source_set_enabled(daemons->timer, SD_EVENT_OFF);
        else {
                r = sd_event_source_set_time(daemons->timer, daemons->again_at);
                if (r >= 0)
                        r = sd_event_source_set_enabled(daemons->timer, SD_EVENT_ONESHOT);
        }
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the timer of the daemonsets");
}

int daemons_end(Daemons *daemons) {
        want_orphans(daemons);
        if (!daemons->has_failed)
                forget_unnamed(daemons);
        warn_of_overlaps(daemons);
        arm_timer(daemons);
        forget_seen(daemons);
        return daemons->has_failed ? -ENOMEM : 0;
}

char *const *daemons_warnings(const Daemons *daemons) {
        return daemons->warnings;
}

void daemons_on_pod(Daemons *daemons, const Pod *pod, bool is_new, bool is_gone) {
        const OwnerReference *owner = object_controller(&pod->metadata);
        const Daemon *daemon = owner ? daemons_find_uid(daemons, owner->uid) : NULL;

        if ((daemon &&
             (is_gone || !daemon->plan.is_settled || daemon->history.rollout_since > 0)) ||
            (daemons->minds_peers && (is_new || is_gone)))
                daemons_schedule(daemons);
}

void daemons_images_changed(Daemons *daemons) {
        for (Daemon *daemon = daemons->list; daemon; daemon = daemon->next)
                if (daemon->staging) {
                        staging_retry(daemon->staging);
                        daemons_schedule(daemons);
                }
}
