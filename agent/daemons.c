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

Daemon *daemons_find_uid(Daemons *daemons, const char *uid) {
        for (Daemon *daemon = daemons->list; daemon; daemon = daemon->next)
                if (streq(daemon->uid, uid))
                        return daemon;
        return NULL;
}

bool daemon_is_named(const Daemons *daemons, const Daemon *daemon) {
        return daemon->set && daemon->generation == daemons->generation;
}

Daemon *daemons_find(Daemons *daemons, const char *namespace, const char *name) {
        for (Daemon *daemon = daemons->list; daemon; daemon = daemon->next)
                if (daemon_is_named(daemons, daemon) && streq(daemon->set->metadata.name, name) &&
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

void daemon_forget_staging(Daemon *daemon) {
        daemon->staging = staging_free(daemon->staging);
        free(daemon->trouble);
        daemon->trouble = NULL;
}

void daemon_forget_pod(Daemon *daemon) {
        daemon_forget_staging(daemon);
        daemon->pod = pod_free(daemon->pod);
        daemon->awaits_pod = false;
}

void daemon_free(Daemon *daemon) {
        daemon_history_done(&daemon->history);
        daemon_decision_done(&daemon->decision);
        daemonset_free(daemon->set);
        daemon_forget_pod(daemon);
        free(daemon->origin);
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
        daemons->begun = steady_now_usec(config->clock);
        r = sd_event_add_defer(config->event, &daemons->due_source, on_due, daemons);
        if (r >= 0)
                r = sd_event_source_set_enabled(daemons->due_source, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time(config->event, &daemons->timer, CLOCK_BOOTTIME, 0, 1,
                                      on_timer, daemons);
        if (r >= 0)
                r = sd_event_source_set_enabled(daemons->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(daemons);
        return 0;
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
        daemons_forget_seen(daemons);
        strv_free(daemons->warnings);
        sd_event_source_disable_unref(daemons->due_source);
        sd_event_source_disable_unref(daemons->timer);
        free(daemons);
        return NULL;
}

/* ---- one set ---- */

void daemons_begin(Daemons *daemons) {
        daemons->generation++;
        daemons->now = steady_now_usec(daemons->config.clock);
        daemons->again_at = 0;
        daemons->minds_peers = false;
        daemons->has_failed = daemons_see(daemons) < 0;
}

void daemons_look_again_at(Daemons *daemons, uint64_t when) {
        if (when > 0 && (daemons->again_at == 0 || when < daemons->again_at))
                daemons->again_at = when;
}

/* What keeps a pod away that belongs here, and is no choice of the set's about nodes. */
static bool is_misplaced(const DaemonDecision *decision) {
        return decision->verdict == DAEMON_KEEP && decision->rule &&
               (streq(decision->rule, "podAffinity") || streq(decision->rule, "podAntiAffinity"));
}

static void tell_decision(const Daemons *daemons, const Daemon *daemon) {
        const DaemonDecision *decision = &daemon->decision;

        log_info("DaemonSet '%s/%s' %s here: %s", daemon->set->metadata.namespace,
                 daemon->set->metadata.name,
                 decision->verdict == DAEMON_RUN ? "runs" : "does not run", decision->why);
        if (is_misplaced(decision) && !daemon_has_pods(daemons, daemon))
                daemon_tell(daemons, daemon, POD_EVENT_WARNING, "FailedPlacement",
                            "failed to place pod on \"%s\": %s", daemons->config.facts->name,
                            decision->why);
}

static int decide(Daemons *daemons, Daemon *daemon) {
        const DaemonPeers peers = { daemons->peers, daemons->n_seen };
        const Affinity *affinity = daemon->set->spec.template.spec.affinity;
        DaemonDecision decision = { 0 };
        bool is_news;
        int r = daemonset_evaluate(daemon->set, daemons->config.facts, &peers, daemons->now,
                                   &decision);

        if (r < 0)
                return r;
        is_news = !streq_ptr(decision.why, daemon->decision.why);
        daemon_decision_done(&daemon->decision);
        daemon->decision = decision;
        if (is_news)
                tell_decision(daemons, daemon);
        daemons_look_again_at(daemons, decision.until);
        daemons->minds_peers =
                daemons->minds_peers || decision.verdict == DAEMON_KEEP ||
                (affinity && (affinity->pod_affinity || affinity->pod_anti_affinity));
        return 0;
}

/* 1 where the set, or where it is from, is another than before; 0; -ENOMEM. */
static int take_set(Daemon *daemon, const char *origin, const DaemonSet *set) {
        cleanup_with(daemonset_freep) DaemonSet *copy = NULL;
        char *name;

        if (!streq_ptr(daemon->origin, origin)) {
                name = strdup(origin);
                if (!name)
                        return -ENOMEM;
                free(daemon->origin);
                daemon->origin = name;
                daemon->has_changed = true;
        }
        if (daemon->set && schema_equal(&daemonset_schema, daemon->set, set))
                return 0;
        if (daemonset_copy(set, &copy) < 0)
                return -ENOMEM;
        daemonset_free(daemon->set);
        daemon->set = TAKE_PTR(copy);
        daemon_forget_pod(daemon);
        daemon->has_changed = true;
        daemon->history.is_orphaning = false; /* somebody wrote it anew */
        return 0;
}

/* Its pods were left and its file is on its way out; unless the agent that was asked for it died
 * before it could remove the file. */
static bool is_leaving(const Daemons *daemons, Daemon *daemon) {
        bool is_first = daemons->generation == 1;

        if (daemon->history.is_orphaning && is_first) {
                log_warning("DaemonSet '%s/%s' was to be deleted without its pods, and is still "
                            "there: it takes them again",
                            daemon->set->metadata.namespace, daemon->set->metadata.name);
                daemon->history.is_orphaning = false;
                daemon->has_changed = true;
        }
        return daemon->history.is_orphaning;
}

/* While no agent looked the selector became another. The pods that there are stay as they are. */
static int keep_foreign(Daemons *daemons, Daemon *daemon) {
        if (!daemon->is_foreign)
                log_error("%s: daemonset %s/%s: spec.selector: field is immutable; its pods go on "
                          "as they are",
                          daemon->origin, daemon->set->metadata.namespace,
                          daemon->set->metadata.name);
        daemon->is_foreign = true;
        return daemon_keep_pods(daemons, daemon);
}

static int consider(Daemons *daemons, const char *origin, const DaemonSet *set) {
        Daemon *daemon = daemons_find_uid(daemons, set->metadata.uid);
        int r;

        if (!daemon)
                daemon = daemons_add(daemons, set->metadata.uid);
        r = daemon ? take_set(daemon, origin, set) : -ENOMEM;
        if (r < 0)
                return r;
        daemon->generation = daemons->generation;
        if (is_leaving(daemons, daemon))
                return 0;
        r = daemon_check_selector(daemons, daemon, daemon_has_pods(daemons, daemon));
        if (r <= 0)
                return r < 0 ? r : keep_foreign(daemons, daemon);
        daemon->is_foreign = false;
        r = decide(daemons, daemon);
        if (r >= 0 && daemon->has_changed) {
                daemons->has_changed = true;
                r = daemon_note_set(daemons, daemon);
                daemon->has_changed = r < 0;
        }
        return r < 0 ? r : daemon_step(daemons, daemon);
}

int daemons_want(Daemons *daemons, const char *origin, const DaemonSet *set) {
        int r = daemons->has_failed ? -ENOMEM : consider(daemons, origin, set);

        if (r < 0 && r != -ENOMEM) {
                (void) log_error_errno(r, "Cannot decide on daemonset '%s/%s', its pods go on",
                                       set->metadata.namespace, set->metadata.name);
                r = daemon_keep_pods(daemons, daemons_find_uid(daemons, set->metadata.uid));
        }
        /* Who could not be decided on must not be taken for one who is not wanted. */
        daemons->has_failed = daemons->has_failed || r < 0;
        return daemons->has_failed ? -ENOMEM : 0;
}

/* ---- all sets ---- */

/* It is nothing any more but the owner of pods that are ending, or that have not been taken from it
 * yet. Should it come again, it is new. */
static void keep_for_its_pods(Daemons *daemons, Daemon *daemon) {
        daemons->has_unnamed = true;
        daemon_forget_pod(daemon);
        daemon->set = daemonset_free(daemon->set);
}

static void forget_unnamed(Daemons *daemons) {
        daemons->has_unnamed = false;
        for (Daemon **link = &daemons->list; *link;) {
                Daemon *daemon = *link;
                bool is_named = daemon->generation == daemons->generation;

                if (is_named || daemon_has_pods(daemons, daemon)) {
                        if (!is_named)
                                keep_for_its_pods(daemons, daemon);
                        link = &daemon->next;
                        continue;
                }
                *link = daemon->next;
                daemons->has_changed = true;
                daemon_forget(daemons, daemon);
                daemon_free(daemon);
        }
}

static bool takes_pods_of(const DaemonSet *set, const DaemonSet *other) {
        return label_selector_matches(set->spec.selector, &other->spec.template.metadata.labels);
}

static void warn_of_overlap(Daemons *daemons, const Daemon *a, const Daemon *b) {
        const ObjectMeta *left = &a->set->metadata, *right = &b->set->metadata;

        if (streq(left->namespace, right->namespace) &&
            (takes_pods_of(a->set, b->set) || takes_pods_of(b->set, a->set)))
                (void) strv_appendf(&daemons->warnings,
                                    "%s: daemonset %s/%s and daemonset %s/%s of %s: one's selector "
                                    "matches the pods of the other",
                                    b->origin, right->namespace, right->name, left->namespace,
                                    left->name, a->origin);
}

static void warn_of_overlaps(Daemons *daemons) {
        if (!daemons->has_changed)
                return;
        daemons->has_changed = false;
        daemons->warnings = strv_free(daemons->warnings);
        for (const Daemon *a = daemons->list; a; a = a->next)
                for (const Daemon *b = a->next; b && daemon_is_named(daemons, a); b = b->next)
                        if (daemon_is_named(daemons, b))
                                warn_of_overlap(daemons, a, b);
}

static void arm_timer(Daemons *daemons) {
        int r = 0;

        if (daemons->again_at == 0)
                (void) sd_event_source_set_enabled(daemons->timer, SD_EVENT_OFF);
        else {
                r = sd_event_source_set_time(daemons->timer,
                                             daemons->again_at - daemons->config.clock->offset);
                if (r >= 0)
                        r = sd_event_source_set_enabled(daemons->timer, SD_EVENT_ONESHOT);
        }
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the timer of the daemonsets");
}

int daemons_end(Daemons *daemons) {
        daemons_want_orphans(daemons);
        if (!daemons->has_failed)
                forget_unnamed(daemons);
        warn_of_overlaps(daemons);
        arm_timer(daemons);
        daemons_forget_seen(daemons);
        daemons->config.on_changed(daemons->config.userdata);
        return daemons->has_failed ? -ENOMEM : 0;
}

char *const *daemons_warnings(const Daemons *daemons) {
        return daemons->warnings;
}

/* By itself: it was evicted, or could not be what it is for some other reason. */
static bool has_ended(const Daemons *daemons, const Pod *pod) {
        cleanup_with(pod_status_done) PodStatus status = { 0 };

        return supervisor_status(daemons->config.supervisor, pod->metadata.uid, &pod, &status) >=
                       0 &&
               (status.phase == POD_FAILED || status.phase == POD_SUCCEEDED) &&
               status.deletion_time == 0;
}

void daemons_on_pod(Daemons *daemons, const Pod *pod, bool is_new, bool is_gone) {
        const OwnerReference *owner = object_controller(&pod->metadata);
        Daemon *daemon = owner ? daemons_find_uid(daemons, owner->uid) : NULL;

        if (daemon && daemon->awaits_pod && is_new &&
            streq(pod->metadata.name, daemon->pod->metadata.name)) {
                daemon->awaits_pod = false;
                daemon_tell(daemons, daemon, POD_EVENT_NORMAL, "SuccessfulCreate",
                            "Created pod: %s", pod->metadata.name);
        }
        if ((daemon && (is_gone || !daemon->plan.is_settled || daemon->history.rollout_since > 0 ||
                        has_ended(daemons, pod))) ||
            daemons->has_unnamed || (daemons->minds_peers && (is_new || is_gone)))
                daemons_schedule(daemons);
        if (daemon)
                daemons->config.on_changed(daemons->config.userdata);
}

void daemons_images_changed(Daemons *daemons) {
        for (Daemon *daemon = daemons->list; daemon; daemon = daemon->next)
                if (daemon->staging) {
                        staging_retry(daemon->staging);
                        daemons_schedule(daemons);
                }
}
