/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Connects the sources of fetched manifests (staticPodURL) with the manifest directory, whose table
 * decides which manifest owns which name. */

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
        IndexRolloutConfig rollout; /* for an index; its source and event loop are filled in here */
        void (*on_event)(const PodEvent *event, void *userdata);
        void (*on_status)(void *userdata); /* fetched_manifests_status() has changed */
        void *userdata;
} FetchedManifestsConfig;

/* 0 or -errno. */
int fetched_manifests_new(const FetchedManifestsConfig *config, FetchedManifests **ret);
FetchedManifests *fetched_manifests_free(FetchedManifests *fetched);
DEFINE_CLEANUP(FetchedManifests *, fetched_manifests_free)

/* To be called before the directory is scanned: the sources' last manifests become part of it. If
 * they cannot be read, the restored pods stay desired, and the error is logged. */
void fetched_manifests_load(FetchedManifests *fetched);

/* Starts to query the sources. 0 or -errno. */
int fetched_manifests_start(FetchedManifests *fetched);

/* Whether the index in use has a progress deadline. */
bool fetched_manifests_have_deadline(const FetchedManifests *fetched);

/* The rollout of the index, for index_rollout_judge() and others; NULL: there is no index. */
IndexRollout *fetched_manifests_rollout(const FetchedManifests *fetched);

/* The sources that are configured. */
NodeSources fetched_manifests_status(const FetchedManifests *fetched);
