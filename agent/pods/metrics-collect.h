/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the rooms know, counted for those who publish it. */

#include "agent/image/image-store.h"
#include "agent/manifest/manifest.h"
#include "agent/metrics/metrics.h"
#include "agent/pods/pod-manager.h"

/* A picture of the agent. Its strings are borrowed from the rooms, until the next scan. */
AgentMetrics collect_agent_counts(const char *node_name, PodManager *pod_manager,
                                  const ManifestDirectory *sources, ImageStore *images);

/* What the node, the pods and the containers that run have used, as Prometheus text
 * (resource_metrics_format()), in memory that the caller frees, or NULL. */
char *collect_resource_usage(PodManager *pod_manager, const BundleConfig *config);

/* "<namespace>/<name>/<uid>", by which pod_manager_next_pod() goes; the caller frees it. NULL where
 * memory ends. */
char *format_pod_key(const Pod *pod);
