/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Resource usage of a cgroup, as the kubelet counts it. */

#include "common/cgroup-io.h"

typedef struct CgroupUsage {
        uint64_t taken_at;          /* realtime, microseconds */
        uint64_t cpu_nsec;          /* since the cgroup was created, including those below it */
        uint64_t working_set_bytes; /* memory without inactive files */
} CgroupUsage;

/* 'path' is absolute in every hierarchy, as in cgroup.h; "/" is the node. 0, -ENOENT if the cgroup
 * is gone, another -errno. */
int cgroup_usage(const char *path, CgroupUsage *ret);

/* More of it, for /stats/summary and /metrics/cadvisor. A number that the kernel does not have for
 * this cgroup is 0. */
typedef struct CgroupStatistics {
        CgroupUsage usage;
        uint64_t cpu_periods; /* of a CPU quota */
        uint64_t cpu_throttled_periods;
        uint64_t cpu_throttled_nsec;
        uint64_t memory_bytes; /* with all files that are cached */
        uint64_t memory_limit; /* 0: none */
        uint64_t rss_bytes;    /* anonymous memory */
        uint64_t cache_bytes;
        uint64_t swap_bytes;
        uint64_t page_faults;
        uint64_t major_page_faults;
        uint64_t n_processes;
        Pressure cpu_pressure, memory_pressure, io_pressure;
        DiskUsages disks;
} CgroupStatistics;

/* As cgroup_usage(). */
int cgroup_statistics(const char *path, CgroupStatistics *ret);
