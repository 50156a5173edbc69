/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cgroups of pods, containers and QoS classes with both cgroup drivers: directories (cgroupfs)
 * or systemd slices. A cgroup is a path as in common/cgroup.h; the path of a slice ends in
 * ".slice".
 *
 * A pod keeps the cgroup in which it was started, even if the driver changes. The path is recorded
 * in <run-dir>/pods/<uid>/cgroup; every lookup goes through cgroup_of_pod(). */

#include "agent/bundle/cgroup-resources.h"
#include "agent/model/resource.h"
#include "agent/model/slice.h"

/* The cgroup of a pod that is about to start, or of a QoS class. The caller frees it; NULL: out of
 * memory.
 */
char *cgroup_of_new_pod(const BundleConfig *config, QosClass qos, const char *uid);
char *cgroup_of_qos_class(const BundleConfig *config, QosClass qos);

/* The pod's recorded cgroup. Without a record, or if the record names the cgroup of something else,
 * the one that exists for the UID, otherwise the one in which the pod would start. */
char *cgroup_of_pod(const BundleConfig *config, QosClass qos, const char *uid);

/* Whether a cgroup is recorded, in which case processes of the pod may be in it. */
bool pod_has_cgroup_record(const BundleConfig *config, const char *uid);

bool cgroup_is_slice(const char *group);
bool cgroup_is_unit(const char *group); /* Whether the cgroup is a slice, or the scope of a
                                         * container in a slice */

/* The unit name of a cgroup that belongs to a unit; points into 'group'. */
const char *cgroup_unit_name(const char *group);

/* The cgroup of a container below that of its pod, and the cgroupsPath with which an OCI runtime
 * creates it there. */
char *cgroup_of_container(const char *pod_group, const char *id);
char *cgroups_path_for_runtime(const char *pod_group, const char *id);

/* systemd stores CPU quotas in hundredths of a CPU. Rounds up to hundredths, like the kubelet, so
 * that a daemon-reload does not change the file. */
int64_t cgroup_round_quota(int64_t quota_usec);
void cgroup_round_values(CgroupValue *values, size_t n);

/* The values for which systemd has a property. Returns their number. */
size_t cgroup_slice_properties(const CgroupValue *values, size_t n,
                               SliceProperty ret[SLICE_PROPERTIES_MAX]);

/* All values of a pod's cgroup, rounded if it is a slice. Returns their number. */
enum {
        POD_CGROUP_VALUES_MAX = CGROUP_VALUES_MAX + N_RESOURCE_TYPES
};
size_t pod_cgroup_all_values(const BundleConfig *config, const Pod *pod, const char *group,
                             CgroupValue ret[POD_CGROUP_VALUES_MAX]);

/* The limits for the cgroup of all pods: the resources that are not reserved. Returns their number,
 * 0 if none is reserved. */
size_t all_pods_cgroup_values(const BundleConfig *config, int version,
                              CgroupValue ret[CGROUP_VALUES_MAX]);

/* Limits the cgroup of a reservation: CPU weight and, unless 'is_compressible_only', memory and
 * processes. 0 or -errno with a message. */
int cgroup_enforce_reservation(const char *group, const NodeReservation *reserved,
                               bool is_compressible_only, Error *reterr);
