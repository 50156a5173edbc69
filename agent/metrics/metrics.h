/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's metrics: counts in, text out, for Prometheus (/metrics) and for the status line of
 * the systemd unit. The counting is done by other modules. */

#include "agent/model/eviction.h"
#include "agent/model/node-status.h"
#include "agent/model/node-usage.h"
#include "agent/model/probe-sample.h"
#include "common/macros.h"

#include <stdint.h>

/* The counts of the agent at a point in time. Strings are borrowed. */
typedef struct AgentMetrics {
        const char *node_name;

        unsigned pods_desired; /* according to valid manifests */
        unsigned pods;         /* existing ones, including terminating ones */
        unsigned pods_running; /* phase Running */

        unsigned containers_created; /* by the state of each container's latest attempt */
        unsigned containers_running;
        unsigned containers_exited;
        unsigned containers_unknown;

        uint64_t pods_started;      /* since the agent started */
        uint64_t user_pods_started; /* of these, pods with a user namespace */
        uint64_t containers_started;
        uint64_t containers_start_errors;
        uint64_t containers_restarted; /* attempts started after the first one of a container */

        unsigned manifests_broken;
        const char *manifest_error;           /* the first error, with file and line; NULL: none */
        const char *manifest_directory_error; /* why the directory cannot be read; NULL: no error */
        unsigned archives_broken;
        const char *api_server_error; /* NULL: no error, or no API server is configured */

        NodeSources sources; /* sources of fetched manifests */

        const NodeConditions *conditions;     /* NULL: unknown */
        const uint64_t *evictions;            /* N_EVICTION_SIGNALS; NULL: unknown */
        uint64_t preemptions[N_NODE_AMOUNTS]; /* number of pods, by the missing resource */

        const ProbeSample *probes;
        size_t n_probes;
} AgentMetrics;

/* The status line ("3 pods, 3 running; 1 manifest broken: web.yaml:7:11: …"). The caller frees it;
 * NULL: out of memory. */
char *agent_metrics_format_status(const AgentMetrics *counts);

/* The Prometheus text format, version 0.0.4, with the kubelet's names for metrics that the kubelet
 * also has, and the metrics of this process. The caller frees it; NULL: out of memory. */
char *agent_metrics_format(const AgentMetrics *counts);

/* /metrics/probes: the results of probes, in the same format. */
char *probe_metrics_format(const ProbeSample *probes, size_t n);
