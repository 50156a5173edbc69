/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Overlap warnings: two DaemonSets of a namespace, one of which selects the pods of the other. Both
 * continue to work, because pods are owned by UID, but this is a mistake in the manifests. */

#include "agent/model/daemonset.h"

typedef struct DaemonSetWithOrigin {
        const DaemonSet *set;
        const char *origin; /* the name of the set's file */
} DaemonSetWithOrigin;

/* Appends a warning to the list if the sets overlap. 0 or -ENOMEM. */
int daemonset_warn_overlap(const DaemonSetWithOrigin *a, const DaemonSetWithOrigin *b,
                           char ***warnings);
