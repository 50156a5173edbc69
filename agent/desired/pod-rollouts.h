/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Rollouts of pods of manifests with a progress deadline: after an edit the new revision is tried,
 * and if it is not Ready in time, the last revision that was Ready is desired again, until the
 * manifest changes. Histories are on disk, <state>/rollouts/<hash of the name>/record, so that a
 * rollback is made only once, even if the agent or the machine restarts. The module starts and
 * stops no pod: it only replaces desired pods. The rules are in rollout-history.h. */

#include "agent/desired/rollout-images.h"
#include "agent/model/desired-pods.h"
#include "agent/model/event.h"
#include "agent/model/status.h"
#include "common/clock.h"

#include <stdio.h>
#include <systemd/sd-event.h>

typedef struct PodRollouts PodRollouts;

/* Everything is borrowed and outlives it. */
typedef struct PodRolloutsConfig {
        sd_event *event;
        const char *state_dir;
        const SteadyClock *clock;
        /* The status of the pod with that UID; see pod_manager_pod_status(). */
        const PodStatus *(*get_status)(const char *uid, void *userdata);
        /* True if pods of this source have no rollouts of their own. */
        bool (*is_excluded)(const PodSource *source, void *userdata);
        image_digest_of_t image_digest_of;
        void (*on_recompute_due)(void *userdata);
        void (*on_event)(const PodEvent *event, void *userdata);
        void *userdata;
} PodRolloutsConfig;

/* Reads the histories. A damaged one is set aside and logged. 0 or -errno. */
int pod_rollouts_new(const PodRolloutsConfig *config, PodRollouts **ret);
PodRollouts *pod_rollouts_free(PodRollouts *rollouts);
DEFINE_CLEANUP(PodRollouts *, pod_rollouts_free)

/* Follows the rollouts, and replaces the desired pods whose revision was rolled back. If 'holds' is
 * true, no rollout is judged because the machine is shutting down. 0 or -ENOMEM. */
int pod_rollouts_apply(PodRollouts *rollouts, DesiredPods *desired, const ActualPods *actual,
                       bool holds);

/* The status of a pod may have changed, or it is gone: if its rollout is in progress, or the pod is
 * not desired, a recomputation is requested. */
void pod_rollouts_on_pod(const PodRollouts *rollouts, const Pod *pod);

/* Adds the images that a rollback would need. */
void pod_rollouts_list_images(const PodRollouts *rollouts, ImageSet *ret);

/* Prints the rollouts for `mainstay debug dump`. */
void pod_rollouts_dump(const PodRollouts *rollouts, FILE *out);
