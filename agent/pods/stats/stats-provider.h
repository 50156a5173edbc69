/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* /stats/summary, /metrics/cadvisor and /runningpods/: collects the usage of the node, its pods and
 * their containers, which metrics/ prints. */

#include "agent/metrics/cpu-rates.h"
#include "agent/model/usage.h"
#include "agent/pods/manager/pod-manager.h"
#include "agent/pods/stats/storage-usage.h"
#include "agent/pods/stats/system-containers.h"

typedef struct StatsProvider {
        sd_event *event; /* this and the next are borrowed */
        PodManager *pods;
        CsiManager *csi; /* borrowed; NULL: there are no volumes of CSI drivers */
        const BundleConfig *bundle;
        const SandboxConfig *sandbox;
        const char *node_name;
        uint64_t started_at; /* start of the agent; realtime */

        CpuRates *cpu_rates;         /* NULL before the first request of a summary */
        StorageUsage *storage_usage; /* NULL before the first request for storage */
        SystemContainers system;     /* of the last request */
        uint64_t usage_asked_at;     /* last request to the shims; boot time; 0: never */
} StatsProvider;

void stats_provider_done(StatsProvider *stats);

/* The summary as JSON; if 'node' is NULL, only CPU and memory. The caller frees the result of this
 * and the next two functions; NULL: out of memory. */
char *stats_provider_summary(StatsProvider *stats, const NodeStats *node);

/* Prometheus text under cAdvisor's names. */
char *stats_provider_cadvisor_metrics(StatsProvider *stats);

/* The usage of claims of CSI drivers as Prometheus text, under the kubelet's names. */
char *stats_provider_volume_metrics(const StatsProvider *stats);

/* A v1.PodList as JSON. */
char *stats_provider_running_pods(const StatsProvider *stats);
