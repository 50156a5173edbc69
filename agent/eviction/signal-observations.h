/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Observations of the eviction signals: the amounts of the node's memory, disk space and process
 * IDs that are available. */

#include "agent/eviction/thresholds.h"
#include "agent/model/usage.h"

typedef struct ObservedPaths {
        const char *pods_group; /* the cgroup of all pods; NULL: unknown */
        const char *state_dir;  /* on nodefs, which is also containerfs */
        const char *images_dir; /* on imagefs */
} ObservedPaths;

/* Reads some files of /proc and queries two file systems; does not block. */
void observe_eviction_signals(const ObservedPaths *paths, SignalObservations *ret);

/* Whether images are on a separate file system, to which pods do not write. */
bool has_dedicated_image_fs(const ObservedPaths *paths);

/* The file systems and process IDs in observations, for /stats/summary. */
NodeStats node_stats_of_observations(const SignalObservations *observed);
