/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Counts for metrics and for systemd's status line, and the resource usage of pods and containers.
 * metrics/ formats them. */

#include "agent/image/image-store.h"
#include "agent/manifest/manifest.h"
#include "agent/metrics/metrics.h"
#include "agent/pods/manager/pod-manager.h"

/* The current counts. Strings are borrowed from the modules, until the next scan. */
AgentMetrics collect_agent_counts(const char *node_name, PodManager *pod_manager,
                                  const ManifestDirectory *sources, ImageStore *images);

/* Resource metrics (CPU, memory) of the node, its pods and running containers as Prometheus text,
 * which the caller frees; NULL: out of memory. */
char *collect_resource_usage(PodManager *pod_manager, const BundleConfig *config);

/* The results of all probes as Prometheus text (/metrics/probes), which the caller frees. */
char *collect_probe_metrics(const PodManager *pod_manager);

/* /metrics: these counts and the results of all probes, in the same form. */
char *collect_agent_metrics(const PodManager *pod_manager, AgentMetrics counts);

/* "<namespace>/<name>/<uid>", the order of pod_manager_next_pod(). The caller frees it; NULL: out
 * of memory. */
char *format_pod_key(const Pod *pod);
