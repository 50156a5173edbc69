/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Orphaned pods are pods that have a directory but neither a record nor a manifest (for pods whose
 * DaemonSet is gone, see agent/daemonset), because an agent died between two steps or a record was
 * damaged. They are cleaned up once, after the first desired state has been applied. */

#include "agent/pods/pod/pod-context.h"

typedef struct OrphanedPods OrphanedPods;

/* The context is borrowed. NULL: out of memory. */
OrphanedPods *orphaned_pods_new(const PodContext *context);

/* Ends the shims of all pods in the run and state directories for which 'is_known' is false, and
 * removes their remains, each in a child. Failures are logged; the next agent tries again. */
void clean_up_orphaned_pods(OrphanedPods *orphans,
                            bool (*is_known)(const char *uid, void *userdata), void *userdata);

/* Whether a pod with that UID is still being cleaned up: until then it cannot start. */
bool orphaned_pods_has(const OrphanedPods *orphans, const char *uid);

/* Whether no cleanup is in progress. */
bool orphaned_pods_is_empty(const OrphanedPods *orphans);

OrphanedPods *orphaned_pods_free(OrphanedPods *orphans);
