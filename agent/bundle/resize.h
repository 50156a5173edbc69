/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* In-place resize: new CPU and memory limits for a running pod. */

#include "agent/bundle/cgroup-resources.h"

/* A container with a running process. */
typedef struct RunningContainer {
        const Container *spec;
        unsigned attempt;
} RunningContainer;

/* Appends the values that remove a limit, for each limit that is not in 'values'. Returns the new
 * number. */
size_t cgroup_values_complete(CgroupValue values[CGROUP_VALUES_MAX], size_t n, int cgroup_version);

/* The content of a cgroup file, without the newline; NULL if it cannot be read. */
char *cgroup_read_value(const char *group, const char *controller, const char *file);

/* Writes the values that differ. Idempotent. 0, or the first failure: -EBUSY if the usage exceeds
 * the new memory limit, in which case the limit is not changed. */
int bundle_resize_pod(const BundleConfig *config, const Pod *pod, const RunningContainer *running,
                      size_t n_running, Error *reterr);

/* Restores a pod's cgroup that another program has removed, which is detected by values that differ
 * from the spec. 1: it was restored, and bundle_resize_pod() must follow; 0: it was intact; or
 * -errno.
 */
int bundle_restore_pod_cgroup(const BundleConfig *config, const Pod *pod, const char *group,
                              Error *reterr);
