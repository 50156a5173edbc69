/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kubelet's resource arithmetic: converts requests and limits to cgroup values of pods and
 * containers (CPU shares, weights and quotas, memory limits, pids.max) and oom_score_adj; also the
 * names of cgroups. Pure functions. */

#include "agent/bundle/bundle-settings.h"
#include "agent/model/containers.h"
#include "agent/model/qos.h"

/* CPU shares for a request: m * 1024 / 1000, between 2 and 262144. */
uint64_t cpu_shares(int64_t milli_cpu);

/* cpu.weight for the cgroup of a pod or QoS class: linear in the shares, as in the kubelet.
 */
uint64_t cpu_weight_of_group(uint64_t shares);

/* cpu.weight for a container: follows the curve of current OCI runtimes, which maps 1024 shares to
 * weight 100. */
uint64_t cpu_weight_of_container(uint64_t shares);

/* CFS quota (cpuCFSQuota) in microseconds per period of 100 ms, at least 1000; 0: no limit. */
int64_t cpu_quota_usec(int64_t milli_cpu);
enum {
        CPU_PERIOD_USEC = 100000
};

/* oom_score_adj of a container, as in the kubelet: -997 for Guaranteed, 1000 for BestEffort, 3 to
 * 999 for Burstable; a sidecar gets at most that of any main container. The container must belong
 * to the spec. */
int oom_score_adj(const PodSpec *spec, const Container *container, int64_t memory_capacity);

/* "<root>/kubepods/pod<uid>" or with "/burstable", "/besteffort" before the pod (cgroupfs driver).
 */
char *pod_cgroup_path(const char *cgroup_root, QosClass qos, const char *uid);

/* "kubepods-burstable-pod<uid>.slice", dashes of the UID as '_' (systemd driver). */
char *pod_slice_name(QosClass qos, const char *uid);

/* "<root>/kubepods[/<qos>]"; freed by the caller. */
char *qos_cgroup_path(const char *cgroup_root, QosClass qos);

typedef struct CgroupValue {
        const char *controller;
        const char *file;
        char value[32];
} CgroupValue;

enum {
        CGROUP_VALUES_MAX = 8
};

/* The values of the pod's cgroup: CPU shares; quota and memory limit if the pod or every container
 * has one; and the process limit. Returns their number. */
size_t pod_cgroup_values(const PodSpec *spec, int cgroup_version, int64_t pod_pids_limit,
                         CgroupValue ret[CGROUP_VALUES_MAX]);

/* The CPU, memory and swap values of a container's cgroup, as the runtime wrote them: cpu.weight,
 * cpu.max, memory.max, memory.swap.max, or those of cgroup v1. Returns their number. */
size_t container_cgroup_values(const BundleConfig *config, const PodSpec *spec,
                               const Container *container, int cgroup_version,
                               CgroupValue ret[CGROUP_VALUES_MAX]);

/* The pod-level CPU request, otherwise the sum of its containers' requests, in thousandths of a
 * CPU. */
int64_t pod_milli_cpu_request(const PodSpec *spec);

/* The pod-level memory limit in bytes, otherwise the sum of those of its containers; both with the
 * overhead; 0: none, for example if a container has none. */
int64_t pod_memory_limit(const PodSpec *spec);
