/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rollout of a signed index with a progress deadline: if its pods and DaemonSets are not ready
 * in time, the node returns to the whole previous index. source/ handles the files and their
 * exchange; this module decides, by the rules of model/rollout-deadline.h. */

#include "agent/desired/pod-sources.h"
#include "agent/image/image-set.h"
#include "agent/model/status.h"
#include "agent/source/manifest-source.h"
#include "common/clock.h"

typedef struct IndexRollout IndexRollout;

/* Everything is borrowed and outlives it. */
typedef struct IndexRolloutConfig {
        sd_event *event;
        const SteadyClock *clock;
        const char *node_name;
        ManifestSource *source;
        const DaemonSetPodSource *daemonsets;
        /* The status of the pod with that UID; see pod_manager_pod_status(). */
        const PodStatus *(*get_status)(const char *uid, void *userdata);
        void (*on_recompute_due)(void *userdata);
        void (*on_proven)(void *userdata); /* the previous index is no longer needed */
        void *userdata;
        void *proven_userdata;
} IndexRolloutConfig;

int index_rollout_new(const IndexRolloutConfig *config, IndexRollout **ret);
IndexRollout *index_rollout_free(IndexRollout *rollout);
DEFINE_CLEANUP(IndexRollout *, index_rollout_free)

/* Another index is about to be used. Also called before the first one. NULL is allowed, as in all
 * following functions. */
void index_rollout_begin(IndexRollout *rollout);

/* Makes the decision; to be called while the desired pods are borrowed. */
void index_rollout_judge(IndexRollout *rollout, const DesiredPods *desired,
                         const ActualPods *actual);

/* Carries out the decision, which may change all manifests of the index; to be called when the
 * desired pods are no longer borrowed. */
void index_rollout_act(IndexRollout *rollout);

/* The status of a pod may have changed. */
void index_rollout_on_pod(const IndexRollout *rollout);

/* Adds the images that a rollback would need. */
void index_rollout_list_images(const IndexRollout *rollout, ImageSet *ret);
