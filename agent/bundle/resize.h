/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* New limits for a pod that runs: what was written when its groups were made is written again. */

#include "agent/bundle/resources.h"

/* A container that has a process. */
typedef struct RunningContainer {
        const Container *spec;
        unsigned attempt;
} RunningContainer;

/* What the group of a container gets of CPU and memory, as its runtime wrote it. Gives how many. */
size_t container_cgroup_values(const BundleConfig *config, const PodSpec *spec,
                               const Container *container, int cgroup_version,
                               CgroupValue ret[CGROUP_VALUES_MAX]);

/* Adds what takes a limit away to each that 'values' do not have. Gives how many there are then. */
size_t cgroup_values_complete(CgroupValue values[CGROUP_VALUES_MAX], size_t n, int cgroup_version);

/* The text of a file of a group, with the end of its line; NULL where it cannot be read. */
char *cgroup_read_value(const char *group, const char *controller, const char *file);

/* Writes what is another; may be done again at any time. 0, or the first failure: -EBUSY where more
 * memory is in use than there may be, which leaves that limit as it was. */
int bundle_resize_pod(const BundleConfig *config, const Pod *pod, const RunningContainer *running,
                      size_t n_running, Error *reterr);

/* Makes the pod's group again where somebody has taken it away: one in which not all is as its spec
 * says. 1: it was so, and bundle_resize_pod() is due; 0: all is there; or -errno. */
int bundle_restore_pod_cgroup(const BundleConfig *config, const Pod *pod, const char *group,
                              Error *reterr);
