/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What there is left of the node's memory, disks and processes. */

#include "agent/eviction/thresholds.h"

typedef struct ObservedPaths {
        const char *pods_group; /* the control group of all pods; NULL: nobody knows */
        const char *state_dir;  /* on nodefs, which is containerfs too */
        const char *images_dir; /* on imagefs */
} ObservedPaths;

/* Asks the kernel, for what it costs nothing to ask: some files of /proc, two file systems. */
void observe_eviction_signals(const ObservedPaths *paths, SignalObservations *ret);

/* Whether images have a file system of their own, in which pods write nothing. */
bool has_dedicated_image_fs(const ObservedPaths *paths);
