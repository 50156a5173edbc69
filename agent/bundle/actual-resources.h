/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The actual resources and user of a running attempt, as ContainerStatus of core/v1 reports them
 * (status.resources, status.user): read from its config.json and from its cgroup. */

#include "agent/bundle/resize.h"
#include "agent/model/status.h"

/* The user and groups of the attempt's first process. 0; -ENOENT if its bundle no longer exists; or
 * another -errno. The caller frees it with container_user_done(). */
int bundle_load_actual_user(const BundleConfig *config, const Pod *pod, const char *container,
                            unsigned attempt, ContainerUser *ret);

/* Replaces CPU and memory in 'resources', a copy of the resources of the spec, with the values of
 * the attempt's cgroup where they differ. Values that cannot be read are not changed. 0 or
 * -ENOMEM. */
int bundle_read_actual_resources(const BundleConfig *config, const Pod *pod,
                                 const RunningContainer *running, ResourceRequirements *resources);
