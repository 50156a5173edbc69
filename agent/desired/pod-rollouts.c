/* SPDX-License-Identifier: Apache-2.0 */
/* Each recomputation compares the revision in the manifest with the running pod, and decides. A
 * rollback is written to disk before it is made, so if the agent dies in between, the next one
 * completes it from the history. */

#include "agent/desired/pod-rollouts.h"

#include "agent/desired/rollout-history.h"
#include "agent/desired/rollout-store.h"
#include "agent/desired/unready-pod.h"
#include "agent/manifest/manifest.h"
#include "agent/model/containers.h"
#include "agent/model/json.h"
#include "agent/model/object-identity.h"
#include "agent/model/own-values.h"
#include "agent/model/rollout-deadline.h"
#include "agent/pods/manager/pod-images.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/log.h"
#include "common/text.h"

#include <errno.h>
#include <inttypes.h>

typedef struct PodRollout {
        RolloutHistory history;
        Pod *good; /* parsed; or NULL */
        bool is_desired;
        SteadyStamp ready;
} PodRollout;

struct PodRollouts {
        PodRolloutsConfig config;
        RolloutStore *store;
        LIST_OF(PodRollout *) items;
        sd_event_source *timer;
        AwakeSince awake;
        uint64_t again_at;
};

/* A pod whose rollout is followed, in one recomputation. */
typedef struct RolloutPass {
        PodRollouts *rollouts;
        PodRollout *rollout;
        DesiredPod *desired;
        const ActualPod *actual; /* or NULL */
        const PodStatus *status; /* status of the running pod; zeroed if there is none */
        uint64_t now;
} RolloutPass;

static const PodStatus no_status = { 0 };

static PodRollout *pod_rollout_free(PodRollout *rollout) {
        if (!rollout)
                return NULL;
        rollout_history_done(&rollout->history);
        pod_free(rollout->good);
        free(rollout);
        return NULL;
}
DEFINE_CLEANUP(PodRollout *, pod_rollout_free)

/* ---- the set ---- */

static PodRollout *find_rollout(const PodRollouts *rollouts, const ObjectMeta *metadata) {
        for (size_t i = 0; i < rollouts->items.n; i++) {
                PodRollout *one = rollouts->items.items[i];

                if (object_has_name(metadata, one->history.namespace, one->history.name))
                        return one;
        }
        return NULL;
}

/* Takes ownership of it, even on failure. 0 or -ENOMEM. */
static int add_rollout_take(PodRollouts *rollouts, PodRollout *rollout) {
        cleanup_with(pod_rollout_freep) PodRollout *owned = rollout;
        PodRollout **added = ARRAY_APPEND(rollouts->items.items, rollouts->items.n);

        if (!added)
                return -ENOMEM;
        *added = TAKE_PTR(owned);
        return 0;
}

static int begin_rollout(PodRollout *rollout, const ObjectMeta *metadata) {
        rollout->history.namespace = strdup(metadata->namespace);
        rollout->history.name = strdup(metadata->name);
        rollout->history.source = metadata->source;
        return rollout->history.namespace && rollout->history.name ? 0 : -ENOMEM;
}

/* If a pod from another source now has the name, it must not be rolled back to a revision of this
 * pod. */
static int take_rollout_over(PodRollout *rollout, const ObjectMeta *metadata) {
        cleanup_with(pod_rollout_freep) PodRollout *other = calloc(1, sizeof(*other));
        PodRollout old = *rollout;
        int r = other ? begin_rollout(other, metadata) : -ENOMEM;

        if (r < 0)
                return r;
        *rollout = *other;
        *other = old;
        return 0;
}

static int get_rollout(PodRollouts *rollouts, const ObjectMeta *metadata, PodRollout **ret) {
        cleanup_with(pod_rollout_freep) PodRollout *rollout = find_rollout(rollouts, metadata);

        *ret = TAKE_PTR(rollout);
        if (*ret && (*ret)->history.source == OBJECT_SOURCE_NONE)
                (*ret)->history.source = metadata->source;
        if (*ret)
                return (*ret)->history.source == metadata->source
                               ? 0
                               : take_rollout_over(*ret, metadata);
        rollout = calloc(1, sizeof(*rollout));
        if (!rollout || begin_rollout(rollout, metadata) < 0)
                return -ENOMEM;
        *ret = rollout;
        return add_rollout_take(rollouts, TAKE_PTR(rollout));
}

static void forget_rollout_at(PodRollouts *rollouts, size_t i) {
        PodRollout *rollout = rollouts->items.items[i];

        rollout_store_remove(rollouts->store, &rollout->history);
        rollouts->items.items[i] = rollouts->items.items[--rollouts->items.n];
        pod_rollout_free(rollout);
}

/* ---- the good revision ---- */

static int parse_good_pod(PodRollout *rollout, Error *reterr) {
        const char *json = rollout->history.good_pod;
        Pod *pod = NULL;
        int r = json ? manifest_parse_record(json, strlen(json), &pod, reterr) : 0;

        if (r < 0)
                return r;
        pod_free(rollout->good);
        rollout->good = pod;
        return 0;
}

static int keep_as_good(const RolloutPass *pass, const Pod *pod, const char *hash) {
        const PodRolloutsConfig *config = &pass->rollouts->config;
        cleanup_free char *json = pod_to_json(pod, NULL);
        cleanup_free char *images =
                rollout_images_format(pod, pass->status, config->image_digest_of, config->userdata);
        int r;

        if (!json || !images)
                return -ENOMEM;
        r = rollout_history_set_good(&pass->rollout->history, hash, json, images);
        if (r < 0)
                return r;
        r = parse_good_pod(pass->rollout, NULL);
        if (r < 0)
                return r;
        rollout_store_write(pass->rollouts->store, &pass->rollout->history);
        return 0;
}

static void use_present_image(PullPolicy *policy) {
        if (*policy == PULL_POLICY_ALWAYS)
                *policy = PULL_POLICY_IF_NOT_PRESENT;
}

/* The good image is present and is not requested: a rollback needs no registry. */
static void use_present_images(Pod *pod) {
        const Container *container;

        pod_foreach_container(container, &pod->spec)
                use_present_image(&((Container *) (uintptr_t) container)->image_pull_policy);
        for (size_t i = 0; i < pod->spec.volumes.n; i++)
                if (pod->spec.volumes.items[i].image)
                        use_present_image(&pod->spec.volumes.items[i].image->pull_policy);
}

/* The pod as it was in its manifest, with the reason. */
static int copy_good_pod(const PodRollout *rollout, Pod **ret) {
        cleanup_with(pod_freep) Pod *pod = NULL;
        int r = pod_copy(rollout->good, &pod);

        if (r < 0)
                return r;
        r = pod_set_uid(pod);
        if (r < 0)
                return r;
        r = own_value_set(&pod->metadata, OWN_KEY_ROLLED_BACK, strna(rollout->history.reason));
        if (r < 0)
                return r;
        use_present_images(pod);
        *ret = TAKE_PTR(pod);
        return 0;
}

static int replace_by_good_pod(const RolloutPass *pass) {
        Pod *pod = NULL;
        int r = pass->rollout->good ? copy_good_pod(pass->rollout, &pod) : 1;

        if (r != 0) /* if there is none, the manifest's pod stays */
                return MIN(r, 0);
        pod->metadata.source = pod_source_origin(&pass->desired->source);
        pod_free(pass->desired->owned);
        pass->desired->pod = pass->desired->owned = pod;
        return 0;
}

/* ---- running pods ---- */

/* Whether the running pod has the manifest's revision, and its whole spec is applied.
 */
static bool runs_tried_revision(const RolloutPass *pass) {
        return pass->actual && actual_pod_is_current(pass->actual) && !pass->actual->successor &&
               pod_source_origin(pass->actual->source) == pass->rollout->history.source &&
               streq(rollout_hash_of(pass->actual->pod), pass->rollout->history.tried);
}

/* "Rolled back: revision 2 of web.yaml did not become ready within 60s: container main:
 * CrashLoopBackOff: back-off …" */
static char *explain_rollback(const RolloutPass *pass) {
        cleanup_free char *why = explain_unready_pod(pass->status);

        if (!why)
                return NULL;
        return text_format("Rolled back: revision %" PRId64
                           " of %s did not become ready within %" PRIu64 "s: %s",
                           pass->rollout->history.number,
                           pod_source_describe(&pass->desired->source),
                           pod_progress_deadline_usec(pass->desired->pod) / USEC_PER_SEC, why);
}

/* ---- the decision ---- */

/* This is determined once, so moving a tag later does not restart anything. */
static int pin_good_images(const RolloutPass *pass) {
        const PodRolloutsConfig *config = &pass->rollouts->config;
        RolloutHistory *history = &pass->rollout->history;
        Pod *good = pass->rollout->good;
        char *json;
        int r;

        if (!good || !history->good_images)
                return 0;
        r = rollout_images_pin(good, history->good_images, config->image_digest_of,
                               config->userdata);
        if (r < 0)
                return r;
        json = pod_to_json(good, NULL);
        if (!json)
                return -ENOMEM;
        free(history->good_pod);
        history->good_pod = json;
        return 0;
}

static int roll_back_pod(const RolloutPass *pass) {
        RolloutHistory *history = &pass->rollout->history;
        cleanup_free char *reason = explain_rollback(pass);
        int r = reason ? pin_good_images(pass) : -ENOMEM;

        if (r >= 0)
                r = rollout_history_set_failed(history, reason);
        if (r < 0)
                return r;
        rollout_store_write(pass->rollouts->store, history);
        log_warning("Pod '%s/%s': %s; restoring the last ready revision", history->namespace,
                    history->name, reason);
        pass->rollouts->config.on_event(&(PodEvent){ .pod = pass->desired->pod,
                                                     .kind = POD_EVENT_WARNING,
                                                     .reason = "PodRollback",
                                                     .message = reason },
                                        pass->rollouts->config.userdata);
        return 0;
}

static void requeue_at(PodRollouts *rollouts, uint64_t at) {
        if (at > 0 && (rollouts->again_at == 0 || at < rollouts->again_at))
                rollouts->again_at = at;
}

static int judge_rollout(const RolloutPass *pass) {
        PodRollouts *rollouts = pass->rollouts;
        bool runs_tried = runs_tried_revision(pass);
        const PodCondition *ready = &pass->status->conditions[CONDITION_READY];
        const RolloutHistory *history = &pass->rollout->history;
        uint64_t deadline = pod_progress_deadline_usec(pass->desired->pod);
        const RolloutState state = {
                .deadline_usec = deadline,
                .since = history->since,
                .is_settled = deadline == 0 || rollout_history_is_settled(history),
                .can_go_back = history->good[0],
                .is_ready = runs_tried && pod_status_is_ready_or_done(pass->status),
                .ready_since = ready->is_true ? MAX(history->since,
                                                    steady_stamp_convert(&pass->rollout->ready,
                                                                         rollouts->config.clock,
                                                                         ready->last_transition))
                                              : 0,
                .awake_since = awake_since_usec(&rollouts->awake, rollouts->config.clock),
                .now = pass->now,
        };
        uint64_t again_at = 0;
        int r = 0;

        switch (rollout_decide(&state, &again_at)) {
        case ROLLOUT_IS_GOOD:
                r = keep_as_good(pass, pass->desired->pod, history->tried);
                break;
        case ROLLOUT_GOES_BACK:
                r = roll_back_pod(pass);
                break;
        case ROLLOUT_CONTINUES:
                break;
        }
        requeue_at(rollouts, again_at);
        return r;
}

/* If no revision was good for long enough, the revision that runs when the next one arrives counts
 * as good. */
static int keep_running_as_good(const RolloutPass *pass) {
        const char *hash =
                pass->actual && pass->actual->pod ? rollout_hash_of(pass->actual->pod) : "";

        if (!actual_pod_is_current(pass->actual) || !pod_status_is_ready_or_done(pass->status) ||
            pod_source_origin(pass->actual->source) != pass->rollout->history.source || !hash[0] ||
            streq(hash, rollout_hash_of(pass->desired->pod)))
                return 0;
        if (!pass->rollout->history.tried[0])
                pass->rollout->history.number++;
        return keep_as_good(pass, pass->actual->pod, hash);
}

/* A broken manifest keeps the last running revision, which may be the target of a rollback. */
static bool is_own_copy(const RolloutPass *pass) {
        return own_pod_value(pass->desired->pod, OWN_KEY_ROLLED_BACK) &&
               streq(rollout_hash_of(pass->desired->pod), pass->rollout->history.good);
}

static int follow_rollout(RolloutPass *pass, bool holds) {
        RolloutHistory *history = &pass->rollout->history;
        const char *hash = rollout_hash_of(pass->desired->pod);
        int r = 0;

        if (is_own_copy(pass))
                return 0;
        if (!history->good[0] && !streq(history->tried, hash))
                r = keep_running_as_good(pass);
        if (r < 0)
                return r;
        if (rollout_history_set_tried(history, hash, pass->now))
                rollout_store_write(pass->rollouts->store, history);
        /* A new agent must first find out what is running. */
        r = holds || pass->status->is_syncing ? 0 : judge_rollout(pass);
        if (r < 0 || !rollout_history_is_failed(history))
                return r;
        return replace_by_good_pod(pass);
}

/* ---- a recomputation ---- */

static bool is_followed(const PodRollouts *rollouts, const DesiredPod *desired) {
        const ObjectMeta *metadata = &desired->pod->metadata;

        return pod_source_is_manifest(&desired->source) && !object_controller(metadata) &&
               (pod_progress_deadline_usec(desired->pod) > 0 ||
                own_pod_value(desired->pod, OWN_KEY_ROLLED_BACK)) &&
               rollout_hash_of(desired->pod)[0] &&
               !rollouts->config.is_excluded(&desired->source, rollouts->config.userdata);
}

static int apply_to_pod(PodRollouts *rollouts, DesiredPod *desired, const ActualPods *actual,
                        uint64_t now, bool holds) {
        RolloutPass pass = { .rollouts = rollouts,
                             .desired = desired,
                             .actual = actual_pods_find(actual, &desired->pod->metadata),
                             .now = now };
        int r = get_rollout(rollouts, &desired->pod->metadata, &pass.rollout);

        if (r < 0)
                return r;
        pass.rollout->is_desired = true;
        if (pass.actual && pass.actual->pod)
                pass.status = rollouts->config.get_status(pass.actual->pod->metadata.uid,
                                                          rollouts->config.userdata);
        if (!pass.status)
                pass.status = &no_status;
        return follow_rollout(&pass, holds);
}

/* A pod that is not desired keeps its history as long as any part of it exists. */
static void forget_undesired_rollouts(PodRollouts *rollouts, const DesiredPods *desired,
                                      const ActualPods *actual) {
        for (size_t i = rollouts->items.n; i-- > 0;) {
                const RolloutHistory *history = &rollouts->items.items[i]->history;
                const ObjectMeta name = { .namespace = history->namespace, .name = history->name };

                if (rollouts->items.items[i]->is_desired)
                        continue;
                if (desired_pods_find(desired, name.namespace, name.name) ||
                    (!desired->is_incomplete && !actual_pods_find(actual, &name)))
                        forget_rollout_at(rollouts, i);
        }
}

static void set_rollout_timer(PodRollouts *rollouts) {
        uint64_t at = rollouts->again_at;
        int r = at == 0 ? sd_event_source_set_enabled(rollouts->timer, SD_EVENT_OFF)
                        : event_timer_arm_at(rollouts->timer, at - rollouts->config.clock->offset);

        if (r < 0)
                (void) log_error_errno(r, "Cannot set the timer of rollouts");
}

int pod_rollouts_apply(PodRollouts *rollouts, DesiredPods *desired, const ActualPods *actual,
                       bool holds) {
        uint64_t now = steady_now_usec(rollouts->config.clock);
        int r = 0;

        rollouts->again_at = 0;
        for (size_t i = 0; i < rollouts->items.n; i++)
                rollouts->items.items[i]->is_desired = false;
        for (size_t i = 0; i < desired->pods.n && r >= 0; i++)
                if (is_followed(rollouts, &desired->pods.items[i]))
                        r = apply_to_pod(rollouts, &desired->pods.items[i], actual, now, holds);
        if (r < 0)
                return r;
        forget_undesired_rollouts(rollouts, desired, actual);
        set_rollout_timer(rollouts);
        return 0;
}

void pod_rollouts_on_pod(const PodRollouts *rollouts, const Pod *pod) {
        const PodRollout *rollout = find_rollout(rollouts, &pod->metadata);

        if (rollout && (!rollout->is_desired || !rollout_history_is_settled(&rollout->history)))
                rollouts->config.on_recompute_due(rollouts->config.userdata);
}

void pod_rollouts_list_images(const PodRollouts *rollouts, ImageSet *ret) {
        for (size_t i = 0; i < rollouts->items.n; i++) {
                const PodRollout *rollout = rollouts->items.items[i];

                rollout_images_list(rollout->history.good_images, ret);
                if (rollout->good)
                        pod_list_images(rollout->good, ret);
        }
}

/* ---- construction ---- */

static int on_rollout_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        const PodRollouts *rollouts = userdata;

        rollouts->config.on_recompute_due(rollouts->config.userdata);
        return 0;
}

/* If the clock was set back, a history may contain a future time. */
static int restore_rollout_take(RolloutHistory *history, void *userdata) {
        PodRollouts *rollouts = userdata;
        PodRollout *rollout = calloc(1, sizeof(*rollout));
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (!rollout) {
                rollout_history_done(history);
                return -ENOMEM;
        }
        rollout->history = *history;
        rollout->history.since = MIN(history->since, rollouts->awake.usec);
        r = parse_good_pod(rollout, &error);
        if (r < 0)
                log_error("Cannot parse the last ready revision of pod '%s/%s': %s",
                          history->namespace, history->name, error_message(&error, r));
        return add_rollout_take(rollouts, rollout);
}

int pod_rollouts_new(const PodRolloutsConfig *config, PodRollouts **ret) {
        cleanup_with(pod_rollouts_freep) PodRollouts *rollouts = calloc(1, sizeof(*rollouts));
        int r;

        if (!rollouts)
                return -ENOMEM;
        rollouts->config = *config;
        rollouts->awake = awake_since_start(config->clock);
        r = rollout_store_new(config->event, config->state_dir, &rollouts->store);
        if (r < 0)
                return r;
        r = rollout_store_load(rollouts->store, restore_rollout_take, rollouts);
        if (r < 0)
                return r;
        r = event_add_disabled_timer(config->event, &rollouts->timer, CLOCK_BOOTTIME, 0,
                                     on_rollout_timer, rollouts);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(rollouts);
        return 0;
}

PodRollouts *pod_rollouts_free(PodRollouts *rollouts) {
        if (!rollouts)
                return NULL;
        for (size_t i = 0; i < rollouts->items.n; i++)
                pod_rollout_free(rollouts->items.items[i]);
        free(rollouts->items.items);
        rollout_store_free(rollouts->store);
        sd_event_source_disable_unref(rollouts->timer);
        free(rollouts);
        return NULL;
}

void pod_rollouts_dump(const PodRollouts *rollouts, FILE *out) {
        for (size_t i = 0; i < rollouts->items.n; i++) {
                const RolloutHistory *history = &rollouts->items.items[i]->history;

                dump_line(out, 1, "rollout: %s/%s, revision %" PRId64 ", %s%s%s",
                          history->namespace, history->name, history->number,
                          rollout_history_is_failed(history)    ? "rolled back"
                          : rollout_history_is_settled(history) ? "good"
                                                                : "under way",
                          history->reason ? ": " : "", strna(history->reason));
        }
        if (rollouts->items.n > 0)
                dump_timer(out, 1, "a rollout is decided", rollouts->timer);
}
