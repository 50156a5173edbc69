/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* diff of a DaemonSet: whether its template is another revision than the one that runs. */

#include "agent/model/daemonset.h"
#include "common/error.h"

#include <jansson.h>

/* Says what would become of the set's pod on a node of that name, given the pods that run. 1 where
 * that is anything, 0, -ENOMEM. */
int diff_daemonset(const char *node, const json_t *pods, const DaemonSet *set);
