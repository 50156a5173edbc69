/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Orphan pods: pods whose DaemonSet was deleted with --cascade=orphan. They stay desired until a
 * DaemonSet with a matching selector adopts them or the user deletes them. */

#include "agent/model/pod.h"

typedef struct OrphanPods OrphanPods;

OrphanPods *orphan_pods_new(void); /* NULL: out of memory */
OrphanPods *orphan_pods_free(OrphanPods *orphans);
DEFINE_CLEANUP(OrphanPods *, orphan_pods_free)

/* Adds a copy of the pod, without its owner. 0 or -ENOMEM. */
int orphan_pods_add(OrphanPods *orphans, const Pod *pod);

bool orphan_pods_contain(const OrphanPods *orphans, const char *uid);

/* The i-th orphan, or NULL after the last. */
const Pod *orphan_pods_get(const OrphanPods *orphans, size_t i);

/* Removes an orphan that was adopted or deleted. Does nothing if there is none. */
void orphan_pods_drop(OrphanPods *orphans, const char *uid);
void orphan_pods_drop_named(OrphanPods *orphans, const char *namespace, const char *name);
