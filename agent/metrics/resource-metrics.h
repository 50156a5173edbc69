/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Resource metrics: CPU time and working set of containers, pods and the node, like the kubelet's
 * /metrics/resource. common/cgroup-usage reads the cgroups. */

#include "common/cgroup-usage.h"

typedef struct ResourceMetrics ResourceMetrics;

/* NULL: out of memory. */
ResourceMetrics *resource_metrics_new(void);
ResourceMetrics *resource_metrics_free(ResourceMetrics *metrics);
DEFINE_CLEANUP(ResourceMetrics *, resource_metrics_free)

/* Adds a container; a pod if 'container' is NULL; the node if 'pod' is NULL. Names are Kubernetes
 * names, which need no escaping. 'started_at' is realtime; 0: unknown. */
void resource_metrics_add(ResourceMetrics *metrics, const char *namespace, const char *pod,
                          const char *container, uint64_t started_at, const CgroupUsage *used);

/* Sets resource_scrape_error to 1: some cgroup could not be read. */
void resource_metrics_set_scrape_error(ResourceMetrics *metrics);

/* The Prometheus text, which the caller frees; NULL: out of memory. */
char *resource_metrics_format(ResourceMetrics *metrics);
