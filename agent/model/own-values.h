/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The values of Mainstay's own labels and annotations (own-keys.h) in objects. */

#include "agent/model/daemonset.h"
#include "agent/model/own-keys.h"

/* The annotation's value, borrowed; NULL: there is none that counts on a pod of its source. */
const char *own_pod_value(const Pod *pod, OwnKey key);

/* On a DaemonSet of any source: it concerns the pods of this one only. */
const char *own_daemonset_value(const DaemonSet *set, OwnKey key);

/* The value as written, for validation, whether or not it counts. */
const char *own_value_as_written(const ObjectMeta *metadata, OwnKey key);

/* The agent's own. 0 or -ENOMEM. */
int own_value_set(ObjectMeta *metadata, OwnKey key, const char *value);

/* Removes fields that only the agent may write from an object of a source. */
void own_values_forget_agents(ObjectMeta *metadata);
