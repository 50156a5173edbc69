/* SPDX-License-Identifier: Apache-2.0 */

/* One set is brought to where its plan is: which pods go on, which end, and whether a new one is
 * wished for; what is rolled back, and what is made anew after it ended by itself. */

#include "agent/daemons-private.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"

#include <inttypes.h>
#include <stdlib.h>

#define LAST_USEC        (10 * USEC_PER_SEC)
#define STAGE_RETRY_USEC (10 * USEC_PER_SEC)

/* NULL: there is none. Each is said once, not at each wish. */
static void set_trouble(const Daemons *daemons, Daemon *daemon, const char *sentence) {
        const ObjectMeta *metadata = &daemon->set->metadata;

        if (streq_ptr(daemon->trouble, sentence))
                return;
        free(daemon->trouble);
        daemon->trouble = sentence ? strdup(sentence) : NULL;
        if (!sentence)
                return;
        log_warning("DaemonSet '%s/%s': its new pod could not begin%s: %s", metadata->namespace,
                    metadata->name, daemon->plan.stages ? ", so the old one goes on" : "",
                    sentence);
        daemon_tell(daemons, daemon, POD_EVENT_WARNING, "FailedCreate", "Error creating: %s",
                    sentence);
}

/* ---- wishes ---- */

static int want(Daemons *daemons, const Daemon *daemon, const Pod *pod, Error *reterr) {
        int r = supervisor_want(daemons->config.supervisor, daemon->origin, pod, reterr);

        daemons->has_failed = daemons->has_failed || r == -ENOMEM;
        return r;
}

/* One of those that are there goes on. An orphan is adopted by that. */
static int want_seen(Daemons *daemons, const Daemon *daemon, SeenPod *seen) {
        cleanup_with(pod_freep) Pod *copy = NULL;
        cleanup_error Error error = ERROR_NULL;
        int r = pod_copy(seen->pod, &copy);

        if (r >= 0 && seen->is_orphan) {
                log_info("DaemonSet '%s/%s' adopts pod '%s'", daemon->set->metadata.namespace,
                         daemon->set->metadata.name, copy->metadata.name);
                r = daemonset_own_pod(daemon->set, copy);
        }
        if (r < 0)
                return r;
        r = want(daemons, daemon, copy, &error);
        if (r < 0)
                log_error("%s: %s", daemon->origin, error_message(&error, r));
        if (seen->is_orphan)
                daemons_drop_orphan(daemons, copy);
        seen->is_orphan = false;
        return 0;
}

static void want_current(Daemons *daemons, Daemon *daemon, bool is_there) {
        cleanup_error Error error = ERROR_NULL;
        int r = want(daemons, daemon, daemon->pod, &error);

        daemon->awaits_pod = !is_there && r >= 0;
        if (r < 0 || !daemon->plan.stages)
                set_trouble(daemons, daemon, r < 0 ? error_message(&error, r) : NULL);
}

static int want_own(Daemons *daemons, Daemon *daemon, const OwnPods *own) {
        bool wants_new = daemon->plan.wants_new, is_there = false;
        const char *name = daemon->pod ? daemon->pod->metadata.name : NULL;
        int r = 0;

        for (size_t i = 0; i < own->n && r >= 0; i++) {
                SeenPod *seen = own->seen[i];

                if (!own->keep[i])
                        continue;
                if (!streq_ptr(seen->pod->metadata.name, name)) {
                        r = want_seen(daemons, daemon, seen);
                        continue;
                }
                is_there = true; /* it is the same one */
                daemons_drop_orphan(daemons, seen->pod);
        }
        if (r >= 0 && (wants_new || is_there))
                want_current(daemons, daemon, is_there);
        return r;
}

int daemon_keep_pods(Daemons *daemons, const Daemon *daemon) {
        int r = 0;

        for (size_t i = 0; i < daemons->n_seen && r >= 0; i++) {
                SeenPod *seen = &daemons->seen[i];
                const OwnerReference *owner = object_controller(&seen->pod->metadata);

                if (!seen->is_ending && owner && streq(owner->uid, daemon->uid))
                        r = want_seen(daemons, daemon, seen);
        }
        return r;
}

/* ---- the pod of the wanted revision ---- */

/* The pod is made when something of it is another: a thousand sets at each wish would take a while.
 */
static bool is_made(const Daemon *daemon, const Revision *revision) {
        char number[24];

        (void) snprintf(number, sizeof(number), "%" PRId64, revision->number);
        return daemon->pod &&
               streq(string_map_get(&daemon->pod->metadata.labels, revision_hash_label),
                     revision->hash) &&
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
        daemon_forget_pod(daemon);
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

static void on_staging_news(void *userdata) {
        daemons_schedule(userdata);
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
        set_trouble(daemons, daemon, r < 0 ? error_message(&error, r) : NULL);
        if (r >= 0 || r == -ENOMEM)
                return r;
        if (daemon->staging)
                staging_retry(daemon->staging);
        daemons_look_again_at(daemons, daemons->now + STAGE_RETRY_USEC);
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
static bool has_lasted(Daemons *daemons, const Daemon *daemon) {
        uint64_t until =
                daemon->plan.ready_since + MIN(progress_deadline_usec(daemon->set) / 2, LAST_USEC);

        if (!daemon->plan.is_available)
                return false;
        if (daemons->now >= until)
                return true;
        daemons_look_again_at(daemons, until);
        return false;
}

/* When the wanted revision has had its time. What an agent that comes finds under way gets half of
 * it again: the machine may have been off. */
static uint64_t deadline_of(const Daemons *daemons, const Daemon *daemon) {
        uint64_t usec = progress_deadline_usec(daemon->set);
        uint64_t end = daemon->history.rollout_since + usec;

        return MAX(end, daemons->begun + usec / 2);
}

/* True where another revision is wanted now: the last good one. */
static bool roll_back(Daemons *daemons, Daemon *daemon) {
        DaemonHistory *history = &daemon->history;
        const Revision *failed = history_find(history, history_wanted(history));
        uint64_t deadline = progress_deadline_usec(daemon->set);
        cleanup_free char *reason = NULL;

        if (deadline == 0 || history->rollout_since == 0 || !history->good[0] || !failed ||
            daemon->decision.verdict != DAEMON_RUN || streq(history->good, failed->hash))
                return false;
        if (daemons->now < deadline_of(daemons, daemon)) {
                daemons_look_again_at(daemons, deadline_of(daemons, daemon));
                return false;
        }
        if (asprintf(&reason,
                     ROLLED_BACK "revision %" PRId64 " did not become available within %" PRIu64
                                 "s",
                     failed->number, deadline / USEC_PER_SEC) < 0) {
                reason = NULL;
                return false;
        }
        log_warning("DaemonSet '%s/%s': %s", history->namespace, history->name, reason);
        daemon_tell(daemons, daemon, POD_EVENT_WARNING, "DaemonSetRollback", "%s", reason);
        return history_pin(history, history->good, NULL, reason, daemons->now) >= 0;
}

/* ---- the step ---- */

static void make_plan(const Daemons *daemons, Daemon *daemon, const OwnPods *own, bool is_staged,
                      bool backs_off) {
        const DaemonPods pods = { own->pods, own->n };

        daemonset_plan(daemon->set, &pods,
                       &(DaemonPlanning){ .verdict = daemon->decision.verdict,
                                          .is_staged = is_staged,
                                          .backs_off = backs_off,
                                          .now = daemons->now },
                       own->keep, &daemon->plan);
}

static int look_at_pods(Daemons *daemons, Daemon *daemon, OwnPods *ret) {
        int r;

        own_pods_done(ret);
        r = daemon_collect_pods(daemons, daemon, ret);
        if (r >= 0)
                make_plan(daemons, daemon, ret, /* is_staged= */ false, /* backs_off= */ true);
        return r;
}

static void tell_ended(const Daemons *daemons, const Daemon *daemon, const OwnPods *own) {
        for (size_t i = 0; i < own->n; i++) {
                const ObjectMeta *pod = &own->seen[i]->pod->metadata;
                bool has_failed = own->seen[i]->phase == POD_FAILED;

                if (own->pods[i].has_ended && !own->pods[i].is_ending)
                        daemon_tell(daemons, daemon,
                                    has_failed ? POD_EVENT_WARNING : POD_EVENT_NORMAL,
                                    has_failed ? "FailedDaemonPod" : "SucceededDaemonPod",
                                    "Found %s daemon pod %s/%s on node %s, will try to %s it",
                                    has_failed ? "failed" : "succeeded", pod->namespace, pod->name,
                                    daemons->config.facts->name, has_failed ? "kill" : "delete");
        }
}

/* True where one that has ended by itself is made anew now. */
static bool remakes(Daemons *daemons, Daemon *daemon, const OwnPods *own) {
        const DaemonPods pods = { own->pods, own->n };
        uint64_t again_at;

        if (daemon->plan.is_syncing || daemon->decision.verdict == DAEMON_STOP ||
            !daemonset_has_ended_pod(daemon->set, &pods))
                return false;
        if (!daemon_back_off_is_over(&daemon->back_off, history_wanted(&daemon->history),
                                     daemons->now, &again_at)) {
                daemons_look_again_at(daemons, again_at);
                return false;
        }
        tell_ended(daemons, daemon, own);
        return true;
}

static void tell_deleted(const Daemons *daemons, const Daemon *daemon, const OwnPods *own) {
        for (size_t i = 0; i < own->n; i++)
                if (!own->keep[i] && !own->pods[i].is_ending)
                        daemon_tell(daemons, daemon, POD_EVENT_NORMAL, "SuccessfulDelete",
                                    "Deleted pod: %s", own->seen[i]->pod->metadata.name);
}

/* Whether the wanted revision is good, or has had its time. */
static int judge(Daemons *daemons, Daemon *daemon, OwnPods *own) {
        if (daemon->plan.is_syncing)
                return 0;
        if (has_lasted(daemons, daemon)) {
                if (history_note_good(&daemon->history))
                        daemon_store_or_say(daemons, daemon);
                return 0;
        }
        if (!roll_back(daemons, daemon))
                return 0;
        daemon_store_or_say(daemons, daemon);
        return look_at_pods(daemons, daemon, own);
}

int daemon_step(Daemons *daemons, Daemon *daemon) {
        cleanup_with(own_pods_done) OwnPods own = { 0 };
        bool is_staged = false, is_remade;
        int r = look_at_pods(daemons, daemon, &own);

        if (r >= 0)
                r = judge(daemons, daemon, &own);
        if (r >= 0)
                r = make_current(daemons, daemon);
        if (r < 0)
                return r;
        is_remade = remakes(daemons, daemon, &own);
        if (daemon->plan.stages) {
                r = stage(daemons, daemon);
                if (r < 0)
                        return r;
                is_staged = r > 0;
        }
        if (is_remade || is_staged)
                make_plan(daemons, daemon, &own, is_staged, !is_remade);
        if (!daemon->plan.stages && daemon->plan.is_available)
                daemon_forget_staging(daemon);
        daemon_count_pods(daemons, daemon, &own);
        daemons_look_again_at(daemons, daemon->plan.again_at);
        tell_deleted(daemons, daemon, &own);
        return want_own(daemons, daemon, &own);
}
