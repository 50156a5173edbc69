/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Resource usage of a cgroup, as the kubelet counts it. */

#include "common/macros.h"

#include <stdint.h>

typedef struct CgroupUsage {
        uint64_t taken_at;          /* realtime, microseconds */
        uint64_t cpu_nsec;          /* since the cgroup was created, including those below it */
        uint64_t working_set_bytes; /* memory without inactive files */
} CgroupUsage;

/* 'path' is absolute in every hierarchy, as in cgroup.h; "/" is the node. 0, -ENOENT if the cgroup
 * is gone, another -errno. */
int cgroup_usage(const char *path, CgroupUsage *ret);
