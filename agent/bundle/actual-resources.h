/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an attempt has in fact, as core/v1's ContainerStatus tells it: read from where it was
 * written for the runtime, and from its control group. */

#include "agent/bundle/resize.h"
#include "agent/model/status.h"

/* The user and the groups that the attempt's first process was given. 0; -ENOENT where its bundle
 * is not there (any more); another -errno. The caller ends it with container_user_done(). */
int bundle_load_actual_user(const BundleConfig *config, const Pod *pod, const char *container,
                            unsigned attempt, ContainerUser *ret);

/* Puts what the attempt's control group has in the place of what 'resources', a copy of its spec's,
 * says of CPU and memory, where that is another. What cannot be read is left as it is. 0 or
 * -ENOMEM. */
int bundle_read_actual_resources(const BundleConfig *config, const Pod *pod,
                                 const RunningContainer *running, ResourceRequirements *resources);
