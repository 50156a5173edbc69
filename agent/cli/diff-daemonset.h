/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* diff of a DaemonSet: whether its template differs from the revision that runs. */

#include "agent/model/daemonset.h"
#include "common/error.h"

#include <jansson.h>

/* Prints the effect on the pod of the set on a node of that name, given the running pods. 1 if
 * there is an effect, 0, -ENOMEM. */
int diff_daemonset(const char *node, const json_t *pods, const DaemonSet *set);
