/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/desired/index-rollout.h"

#include "agent/desired/index-objects.h"
#include "agent/desired/rollout-history.h"
#include "agent/desired/unready-pod.h"
#include "agent/model/rollout-deadline.h"
#include "agent/pods/manager/pod-images.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/log.h"
#include "common/text.h"

#include <inttypes.h>

/* The delay before a rollback that could not be written to disk is retried. */
#define ROLLBACK_RETRY_USEC (10 * USEC_PER_SEC)

struct IndexRollout {
        IndexRolloutConfig config;
        sd_event_source *timer;
        AwakeSince awake;
        IndexObjects previous; /* objects of the previous index, whose images are kept */
        RolloutDecision decision;
        char *reason; /* reason of the decision to roll back */
        SteadyStamp fetched, ready_since;
};

/* The state of everything that the index desires on this node. */
typedef struct IndexReadiness {
        const IndexRollout *rollout;
        const ActualPods *actual;
        uint64_t ready_since; /* when the last object became ready; realtime */
        char *unready;        /* the part that is not ready, and why; NULL: everything is ready */
        bool is_unknown;      /* a new agent must first find out what is running */
} IndexReadiness;

/* ---- the previous index ---- */

/* The objects are needed for their images. Unreadable data is not kept. */
static void read_previous_index(IndexRollout *rollout) {
        cleanup_close int fd = manifest_source_open_previous(rollout->config.source);
        int r = fd < 0 ? fd : index_objects_read(fd, rollout->config.node_name, &rollout->previous);

        if (r < 0)
                (void) log_warning_errno(r, "Cannot read the previous index");
}

void index_rollout_begin(IndexRollout *rollout) {
        uint64_t since;

        if (!rollout)
                return;
        index_objects_done(&rollout->previous);
        if (!manifest_source_is_on_trial(rollout->config.source, &since))
                return;
        read_previous_index(rollout);
        /* An index with the same files as the previous one causes no change that would request a
         * recomputation. */
        rollout->config.on_recompute_due(rollout->config.userdata);
}

static void list_previous_images(const Pod *pod, void *userdata) {
        pod_list_images(pod, userdata);
}

void index_rollout_list_images(const IndexRollout *rollout, ImageSet *ret) {
        if (rollout)
                index_objects_foreach_pod(&rollout->previous, list_previous_images, ret);
}

/* ---- desired objects ---- */

static void set_index_unready(IndexReadiness *readiness, const char *kind,
                              const ObjectMeta *metadata, const char *why) {
        readiness->unready =
                text_format("%s %s/%s: %s", kind, metadata->namespace, metadata->name, why);
        if (!readiness->unready)
                readiness->unready = strdup("out of memory");
}

/* Only the controller knows the revision of a DaemonSet's pod; see check_daemonsets(). */
static bool is_desired_revision(const DesiredPod *desired, const ActualPod *actual) {
        return actual_pod_is_current(actual) && !actual->successor &&
               (object_controller(&desired->pod->metadata) ||
                streq(rollout_hash_of(actual->pod), rollout_hash_of(desired->pod)));
}

static void check_running_pod(IndexReadiness *readiness, const DesiredPod *desired,
                              const ActualPod *actual) {
        const IndexRolloutConfig *config = &readiness->rollout->config;
        static const PodStatus unknown = { 0 };
        const PodStatus *status = config->get_status(actual->pod->metadata.uid, config->userdata);
        cleanup_free char *why = NULL;

        if (!status)
                status = &unknown;
        readiness->is_unknown = readiness->is_unknown || status->is_syncing;
        if (is_desired_revision(desired, actual) && pod_status_is_ready_or_done(status)) {
                readiness->ready_since = MAX(readiness->ready_since,
                                             status->conditions[CONDITION_READY].last_transition);
                return;
        }
        why = explain_unready_pod(status);
        set_index_unready(readiness, "pod", &desired->pod->metadata, strna(why));
}

static void check_desired_pod(IndexReadiness *readiness, const DesiredPod *desired) {
        const ObjectMeta *metadata = &desired->pod->metadata;
        const ActualPod *actual = actual_pods_find(readiness->actual, metadata);

        if (desired->source.kind != POD_SOURCE_INDEX)
                return;
        if (actual && actual->pod)
                check_running_pod(readiness, desired, actual);
        else
                set_index_unready(readiness, "pod", metadata, "it does not exist");
}

static void check_daemonsets(IndexReadiness *readiness) {
        const DaemonSetPodSource *daemonsets = readiness->rollout->config.daemonsets;
        const DaemonSet *set = daemonsets->find_unready(POD_SOURCE_INDEX, daemonsets->userdata);

        if (set && !readiness->unready)
                set_index_unready(readiness, "daemonset", &set->metadata,
                                  "its pod is not available");
}

/* ---- the decision ---- */

static char *explain_index_rollback(const IndexRollout *rollout, const char *unready) {
        return text_format("rolled back index %" PRId64 ": not everything was ready within %" PRIu64
                           "s: %s",
                           manifest_source_status(rollout->config.source).number,
                           manifest_source_deadline_usec(rollout->config.source) / USEC_PER_SEC,
                           strna(unready));
}

static void arm_index_timer(IndexRollout *rollout, uint64_t at) {
        int r = event_timer_arm_at(rollout->timer, at - rollout->config.clock->offset);

        if (r < 0)
                (void) log_error_errno(r, "Cannot set the rollout timer of the index");
}

static void decide_index(IndexRollout *rollout, const IndexReadiness *readiness, uint64_t since) {
        const SteadyClock *clock = rollout->config.clock;
        uint64_t ready_since =
                steady_stamp_convert(&rollout->ready_since, clock, readiness->ready_since);
        uint64_t deadline = manifest_source_deadline_usec(rollout->config.source);
        const RolloutState state = {
                .deadline_usec = deadline,
                .since = since,
                .is_settled = deadline == 0,
                .can_go_back = true,
                .is_ready = !readiness->unready,
                /* Pods that the index did not change were ready before. */
                .ready_since = MAX(ready_since, since),
                .awake_since = awake_since_usec(&rollout->awake, clock),
                .now = steady_now_usec(clock),
        };
        uint64_t again_at = 0;

        rollout->decision = rollout_decide(&state, &again_at);
        free(rollout->reason);
        rollout->reason = rollout->decision == ROLLOUT_GOES_BACK
                                  ? explain_index_rollback(rollout, readiness->unready)
                                  : NULL;
        if (again_at > 0)
                arm_index_timer(rollout, again_at);
}

void index_rollout_judge(IndexRollout *rollout, const DesiredPods *desired,
                         const ActualPods *actual) {
        IndexReadiness readiness = { .rollout = rollout, .actual = actual };
        uint64_t since;

        if (!rollout)
                return;
        rollout->decision = ROLLOUT_CONTINUES;
        (void) sd_event_source_set_enabled(rollout->timer, SD_EVENT_OFF);
        if (!manifest_source_is_on_trial(rollout->config.source, &since) || desired->is_incomplete)
                return;
        for (size_t i = 0; i < desired->pods.n && !readiness.unready && !readiness.is_unknown; i++)
                check_desired_pod(&readiness, &desired->pods.items[i]);
        check_daemonsets(&readiness);
        /* If the clock was set back, the time at which the index was fetched may be in the future.
         */
        if (!readiness.is_unknown)
                decide_index(rollout, &readiness,
                             steady_stamp_convert(&rollout->fetched, rollout->config.clock, since));
        free(readiness.unready);
}

void index_rollout_act(IndexRollout *rollout) {
        cleanup_free char *reason = NULL;
        RolloutDecision decision;

        if (!rollout)
                return;
        decision = rollout->decision;
        reason = TAKE_PTR(rollout->reason);
        rollout->decision = ROLLOUT_CONTINUES;
        if (decision == ROLLOUT_IS_GOOD) {
                manifest_source_end_trial(rollout->config.source);
                index_objects_done(&rollout->previous);
                rollout->config.on_proven(rollout->config.proven_userdata);
        } else if (decision == ROLLOUT_GOES_BACK && reason) {
                if (manifest_source_roll_back(rollout->config.source, reason) < 0)
                        arm_index_timer(rollout, steady_now_usec(rollout->config.clock) +
                                                         ROLLBACK_RETRY_USEC);
        }
}

void index_rollout_on_pod(const IndexRollout *rollout) {
        uint64_t since;

        if (rollout && manifest_source_is_on_trial(rollout->config.source, &since))
                rollout->config.on_recompute_due(rollout->config.userdata);
}

/* ---- construction ---- */

static int on_index_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        const IndexRollout *rollout = userdata;

        rollout->config.on_recompute_due(rollout->config.userdata);
        return 0;
}

int index_rollout_new(const IndexRolloutConfig *config, IndexRollout **ret) {
        cleanup_with(index_rollout_freep) IndexRollout *rollout = calloc(1, sizeof(*rollout));
        int r;

        if (!rollout)
                return -ENOMEM;
        rollout->config = *config;
        rollout->awake = awake_since_start(config->clock);
        r = event_add_disabled_timer(config->event, &rollout->timer, CLOCK_BOOTTIME, 0,
                                     on_index_timer, rollout);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(rollout);
        return 0;
}

IndexRollout *index_rollout_free(IndexRollout *rollout) {
        if (!rollout)
                return NULL;
        index_objects_done(&rollout->previous);
        sd_event_source_disable_unref(rollout->timer);
        free(rollout->reason);
        free(rollout);
        return NULL;
}
