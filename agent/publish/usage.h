/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What containers, pods and the node have used, as the kubelet tells it on /metrics/resource. */

#include "common/cgroup-usage.h"

typedef struct Usage Usage;

/* NULL where memory ends. */
Usage *usage_new(void);
Usage *usage_free(Usage *usage);
DEFINE_CLEANUP(Usage *, usage_free)

/* Adds a container, or a pod where 'container' is NULL, or the node where 'pod' is. Names are those
 * of Kubernetes, which need no escaping. 'started_at' is realtime; 0: unknown. */
void usage_add(Usage *usage, const char *namespace, const char *pod, const char *container,
               uint64_t started_at, const CgroupUsage *used);

/* Something could not be read, and is missing. */
void usage_add_failure(Usage *usage);

/* The Prometheus text, in memory that the caller frees, or NULL. */
char *usage_print(Usage *usage);
