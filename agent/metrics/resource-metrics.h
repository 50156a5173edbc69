/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What containers, pods and the node have used, as the kubelet tells it on /metrics/resource. */

#include "common/cgroup-usage.h"

typedef struct ResourceMetrics ResourceMetrics;

/* NULL where memory ends. */
ResourceMetrics *resource_metrics_new(void);
ResourceMetrics *resource_metrics_free(ResourceMetrics *metrics);
DEFINE_CLEANUP(ResourceMetrics *, resource_metrics_free)

/* Adds a container, or a pod where 'container' is NULL, or the node where 'pod' is. Names are those
 * of Kubernetes, which need no escaping. 'started_at' is realtime; 0: unknown. */
void resource_metrics_add(ResourceMetrics *metrics, const char *namespace, const char *pod,
                          const char *container, uint64_t started_at, const CgroupUsage *used);

/* Something could not be read, and is missing. */
void resource_metrics_set_scrape_error(ResourceMetrics *metrics);

/* The Prometheus text, in memory that the caller frees, or NULL. */
char *resource_metrics_format(ResourceMetrics *metrics);
