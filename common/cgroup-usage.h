/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a control group has used, as the kubelet counts it. */

#include "common/macros.h"

#include <stdint.h>

typedef struct CgroupUsage {
        uint64_t taken_at;          /* realtime, microseconds */
        uint64_t cpu_nsec;          /* since the group was made, with those below it */
        uint64_t working_set_bytes; /* memory without the files that nobody has looked at lately */
} CgroupUsage;

/* 'path' is absolute in every hierarchy, as in cgroup.h; "/" is the node. 0, -ENOENT where the
 * group is gone, another -errno. */
int cgroup_usage(const char *path, CgroupUsage *ret);
