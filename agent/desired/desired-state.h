/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The header of the module. The manifest directory, fetched manifests, DaemonSets, orphans and the
 * API server yield one set of desired pods. It is compared with the actual pods, each of which is
 * started, edited, kept, or stopped for a reason. The module owns the manifest directory, and it
 * alone decides when a recomputation is due. pods/ decides how a pod is started or stopped. */

#include "agent/desired/pod-sources.h"
#include "agent/eviction/eviction-manager.h"
#include "agent/image/image-store.h"
#include "agent/manifest/manifest.h"
#include "agent/model/event.h"
#include "agent/model/node-status.h"
#include "agent/model/node.h"
#include "agent/node/agent-paths.h"
#include "agent/pods/manager/pod-manager.h"
#include "agent/sandbox/systemd-client.h"
#include "common/clock.h"

typedef struct DesiredState DesiredState;

/* Everything is borrowed and outlives it. */
typedef struct DesiredStateConfig {
        sd_event *event;
        const AgentPaths *paths;
        const Config *config;
        const char *node_name;
        const SteadyClock *clock;
        const ObjectLookup *objects; /* PriorityClasses and RuntimeClasses */
        PodManager *pod_manager;
        EvictionManager *eviction_manager;
        DaemonSetPodSource daemonsets;
        ApiServerPodSource apiserver;
        ImageStore *images;
        const NodeLabelsTaints *node;
        void (*on_event)(const PodEvent *event, void *userdata);
        void (*on_recomputed)(void *userdata);
        void (*on_source_status)(void *userdata); /* desired_state_sources() has changed */
        void *userdata;
} DesiredStateConfig;

int desired_state_new(const DesiredStateConfig *config, DesiredState **ret);
DesiredState *desired_state_free(DesiredState *state);
DEFINE_CLEANUP(DesiredState *, desired_state_free)

/* For pod_manager_load_records() and the DaemonSet controller: pods that an earlier agent ran stay
 * desired until their source reports otherwise; 'userdata' is the DesiredState. 0 or -ENOMEM. */
int desired_state_restore_pod(const PodSource *source, const Pod *pod, void *userdata);
int desired_state_restore_daemonset(const PodSource *source, const DaemonSet *set, void *userdata);

/* Scans the manifest directory, watches it, and starts to fetch manifests from their sources; then
 * the desired state is computed for the first time. */
int desired_state_start(DesiredState *state, Error *reterr);

/* Requests a recomputation, which runs at most once per turn of the event loop, before pods are
 * stepped. Nothing happens before the first scan. */
void desired_state_request_recompute(DesiredState *state);

/* The agent is about to exit: nothing is recomputed from now on. */
void desired_state_suspend(DesiredState *state);

/* No pod is desired any more, regardless of the sources (--drain): pods stop in order, each of them
 * when no remaining pod has to stop before it. The event loop exits when no pod is left and
 * 'systemd' (NULL: none) is idle. 0 or -errno. */
int desired_state_start_drain(DesiredState *state, SystemdClient *systemd);

/* The status of a pod, on which a rollout may depend, may have changed. NULL does nothing. */
void desired_state_on_pod(DesiredState *state, const Pod *pod);

/* Adds the images that a rollback would need. */
void desired_state_list_images(const DesiredState *state, ImageSet *ret);

/* True once the result of the first scan has been applied. */
bool desired_state_is_computed(const DesiredState *state);

/* Prints the manifests with their state, and the desired pods with their sources, for `mainstay
 * debug dump`. */
void desired_state_dump(const DesiredState *state, FILE *out);

const ManifestDirectory *desired_state_manifests(const DesiredState *state);

/* The configured sources of fetched manifests. */
NodeSources desired_state_sources(const DesiredState *state);
