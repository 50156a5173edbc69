/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is left of pods that nobody knows by more than their directory: an agent died between two
 * steps, or a record was damaged and its manifest is gone. Looked for once, after the first wishes.
 */

#include "agent/pods/pod-context.h"

typedef struct OrphanedPods OrphanedPods;

/* The context is borrowed. NULL where memory ends. */
OrphanedPods *orphaned_pods_new(const PodContext *context);

/* Ends the shims of all pods in the run and state directories of which 'is_known' says no, and
 * removes what they left, each in a child. Failures are logged; the next agent tries again. */
void clean_up_orphaned_pods(OrphanedPods *orphans,
                            bool (*is_known)(const char *uid, void *userdata), void *userdata);

/* Whether a pod of that UID is still being cleaned up: until then it cannot begin anew. */
bool orphaned_pods_has(const OrphanedPods *orphans, const char *uid);

/* Nothing is being cleaned up any more. */
bool orphaned_pods_is_empty(const OrphanedPods *orphans);

OrphanedPods *orphaned_pods_free(OrphanedPods *orphans);
