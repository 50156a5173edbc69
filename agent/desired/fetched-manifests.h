/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Connects the sources of manifests that are fetched (staticPodURL) with the manifest directory,
 * whose table decides which manifest has which name. */

#include "agent/desired/index-rollout.h"
#include "agent/image/image-store.h"
#include "agent/manifest/manifest.h"
#include "agent/model/event.h"
#include "agent/model/node-status.h"
#include "agent/model/node.h"
#include "agent/node/agent-paths.h"

typedef struct FetchedManifests FetchedManifests;

/* Everything is borrowed and outlives it. */
typedef struct FetchedManifestsConfig {
        sd_event *event;
        const Config *config;
        const AgentPaths *paths;
        ManifestDirectory *manifests;
        ImageStore *images;
        const NodeLabelsTaints *node;
        IndexRolloutConfig rollout; /* of an index; its source and event loop are filled in */
        void (*on_event)(const PodEvent *event, void *userdata);
        void (*on_status)(void *userdata); /* fetched_manifests_status() is different */
        void *userdata;
} FetchedManifestsConfig;

/* 0 or -errno. */
int fetched_manifests_new(const FetchedManifestsConfig *config, FetchedManifests **ret);
FetchedManifests *fetched_manifests_free(FetchedManifests *fetched);
DEFINE_CLEANUP(FetchedManifests *, fetched_manifests_free)

/* Before the directory is scanned: the last manifests of the sources become part of it. Unreadable
 * state stays as it was restored, and is logged. */
void fetched_manifests_load(FetchedManifests *fetched);

/* Asks the sources from now on. 0 or -errno. */
int fetched_manifests_start(FetchedManifests *fetched);

/* The index in use has a progress deadline. */
bool fetched_manifests_have_deadline(const FetchedManifests *fetched);

/* The rollout of the index, for index_rollout_judge() and others; NULL: there is no index. */
IndexRollout *fetched_manifests_rollout(const FetchedManifests *fetched);

/* The sources that are configured. */
NodeSources fetched_manifests_status(const FetchedManifests *fetched);
