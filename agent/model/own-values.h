/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The values of Mainstay's own labels and annotations (own-keys.h) in objects. */

#include "agent/model/daemonset.h"
#include "agent/model/own-keys.h"

/* The annotation's value, borrowed; NULL: there is none, or it is not used on pods of this
 * source. */
const char *own_pod_value(const Pod *pod, OwnKey key);

/* The value on a DaemonSet of any source: it only affects the pods of that DaemonSet. */
const char *own_daemonset_value(const DaemonSet *set, OwnKey key);

/* The value as written, for validation, even if it is not used. */
const char *own_value_as_written(const ObjectMeta *metadata, OwnKey key);

/* Sets a value that the agent writes. 0 or -ENOMEM. */
int own_value_set(ObjectMeta *metadata, OwnKey key, const char *value);

/* Removes the keys that only the agent may write from an object that a source has written. */
void own_values_forget_agents(ObjectMeta *metadata);
