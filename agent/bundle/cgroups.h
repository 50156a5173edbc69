/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The control groups of pods by either driver: directories that we make (cgroupfs), or slices that
 * systemd knows. A group is a path as in common/cgroup.h; one that is a slice ends in ".slice".
 *
 * A pod stays in the group that it was begun in, which is noted in <run-dir>/pods/<uid>/cgroup,
 * also when the driver is another by now: all who look for a pod's group ask cgroup_of_pod(). */

#include "agent/bundle/resources.h"
#include "agent/model/resource.h"
#include "agent/model/slice.h"

/* Of a pod that begins now, or of a QoS class. In memory that the caller frees, or NULL. */
char *cgroup_of_new_pod(const BundleConfig *config, QosClass qos, const char *uid);
char *cgroup_of_qos_class(const BundleConfig *config, QosClass qos);

/* The group that the pod is in; where none is noted, the one that it would be in. */
char *cgroup_of_pod(const BundleConfig *config, QosClass qos, const char *uid);

bool cgroup_is_slice(const char *group);
bool cgroup_is_unit(const char *group); /* a slice, or a container's scope in one */

/* The unit of a group that is one: points into 'group'. */
const char *cgroup_unit_name(const char *group);

/* A container's group within its pod's, and what an OCI runtime is told to have it there. */
char *cgroup_of_container(const char *pod_group, const char *id);
char *cgroups_path_for_runtime(const char *pod_group, const char *id);

/* systemd keeps a quota in hundredths of a CPU. Rounds it up to that, as the kubelet does, so that
 * a daemon-reload changes nothing. */
int64_t cgroup_round_quota(int64_t quota_usec);
void cgroup_round_values(CgroupValue *values, size_t n);

/* Those of the values that systemd has a property for. Gives how many. */
size_t cgroup_slice_properties(const CgroupValue *values, size_t n,
                               SliceProperty ret[SLICE_PROPERTIES_MAX]);

/* All values of a pod's group, rounded where it is a slice. Gives how many. */
enum {
        POD_CGROUP_VALUES_MAX = CGROUP_VALUES_MAX + N_RESOURCE_TYPES
};
size_t pod_cgroup_all_values(const BundleConfig *config, const Pod *pod, const char *group,
                             CgroupValue ret[POD_CGROUP_VALUES_MAX]);
