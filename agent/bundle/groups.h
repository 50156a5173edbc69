/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The control groups of pods by either driver: directories that we make (cgroupfs), or slices that
 * systemd knows. A group is a path as in common/cgroup.h; one that is a slice ends in ".slice".
 *
 * A pod stays in the group that it was begun in, which is noted in <run-dir>/pods/<uid>/cgroup,
 * also when the driver is another by now: all who look for a pod's group ask group_of_pod(). */

#include "agent/bundle/resources.h"
#include "agent/model/resource.h"
#include "agent/model/slice.h"

/* Of a pod that begins now, or of a QoS class. In memory that the caller frees, or NULL. */
char *group_of_new_pod(const BundleConfig *config, QosClass qos, const char *uid);
char *group_of_qos(const BundleConfig *config, QosClass qos);

/* The group that the pod is in; where none is noted, the one that it would be in. */
char *group_of_pod(const BundleConfig *config, QosClass qos, const char *uid);

bool group_is_slice(const char *group);
bool group_is_unit(const char *group); /* a slice, or a container's scope in one */

/* The unit of a group that is one: points into 'group'. */
const char *group_unit(const char *group);

/* A container's group within its pod's, and what an OCI runtime is told to have it there. */
char *group_of_container(const char *pod_group, const char *id);
char *group_for_runtime(const char *pod_group, const char *id);

/* systemd keeps a quota in hundredths of a CPU. Rounds it up to that, as the kubelet does, so that
 * a daemon-reload changes nothing. */
int64_t group_round_quota(int64_t quota_usec);
void group_round_values(CgroupValue *values, size_t n);

/* Those of the values that systemd has a property for. Gives how many. */
size_t group_properties(const CgroupValue *values, size_t n,
                        SliceProperty ret[SLICE_PROPERTIES_MAX]);

/* All values of a pod's group, rounded where it is a slice. Gives how many. */
enum {
        GROUP_VALUES_MAX = CGROUP_VALUES_MAX + N_RESOURCE_TYPES
};
size_t group_values(const BundleConfig *config, const Pod *pod, const char *group,
                    CgroupValue ret[GROUP_VALUES_MAX]);
