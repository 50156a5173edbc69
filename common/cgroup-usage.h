/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Resource usage of a cgroup and of the machine, counted as in the kubelet. */

#include "common/cgroup-io.h"

typedef struct CgroupUsage {
        uint64_t taken_at;          /* realtime, microseconds */
        uint64_t cpu_nsec;          /* since the cgroup was created, including those below it */
        uint64_t working_set_bytes; /* memory without inactive files */
        bool lacks_memory;          /* memory is unknown because the memory controller is missing */
} CgroupUsage;

/* 'path' is absolute in every hierarchy, as in cgroup.h; "/" is the node. 0, -ENOENT if the cgroup
 * is gone, another -errno. */
int cgroup_usage(const char *path, CgroupUsage *ret);

/* The memory of the machine (/proc/meminfo); inactive files are cached files that the kernel drops
 * first. 0 or -errno. */
typedef struct MachineMemory {
        uint64_t total_bytes, free_bytes, inactive_file_bytes;
} MachineMemory;

int machine_memory_usage(MachineMemory *ret);

/* More details, for /stats/summary and /metrics/cadvisor. Numbers that the kernel does not provide
 * for this cgroup are 0. */
typedef struct CgroupStatistics {
        CgroupUsage usage;
        uint64_t cpu_user_nsec, cpu_system_nsec;
        uint64_t cpu_periods; /* of a CPU quota */
        uint64_t cpu_throttled_periods;
        uint64_t cpu_throttled_nsec;
        uint64_t memory_bytes; /* including all cached files */
        uint64_t memory_limit; /* 0: none */
        uint64_t rss_bytes;    /* anonymous memory */
        uint64_t cache_bytes;
        uint64_t mapped_file_bytes;
        uint64_t swap_bytes;
        uint64_t page_faults;
        uint64_t major_page_faults;
        uint64_t own_page_faults; /* this and the next member: with version 1, without the cgroups
                                   * below */
        uint64_t own_major_page_faults;
        uint64_t n_processes; /* of the cgroup itself, without those below */
        uint64_t n_threads;
        Pressure cpu_pressure, memory_pressure, io_pressure;
        DiskUsages disks;
} CgroupStatistics;

/* As cgroup_usage(). */
int cgroup_statistics(const char *path, CgroupStatistics *ret);

/* The rest is only for /metrics/cadvisor: limits, and how often they were hit. 0: not provided by
 * the kernel, or no limit. */
typedef struct CgroupDetails {
        uint64_t cpu_shares; /* from version 1; with version 2, cAdvisor's conversion of the
                              * weight */
        uint64_t cpu_period_usec, cpu_quota_usec;
        uint64_t memory_failures; /* the limit was hit */
        uint64_t memory_peak;
        uint64_t memory_reservation;
        uint64_t swap_limit; /* with version 1, memory and swap together */
        uint64_t oom_kills;
        uint64_t threads_max;
} CgroupDetails;

/* 'path' as in cgroup_usage(). Values that cannot be read are zero. */
void cgroup_details(const char *path, CgroupDetails *ret);

/* The shares for a weight (1 to 10000) by cAdvisor's formula; 0 for other numbers. Pure. */
uint64_t cgroup_shares_of_weight(uint64_t weight);
