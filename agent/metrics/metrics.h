/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's state in a few words, for systemd (sd_notify) and for Prometheus. Counts come in,
 * text goes out; what they mean is decided elsewhere. */

#include "agent/model/eviction.h"
#include "agent/model/probe-sample.h"
#include "common/macros.h"

#include <stdint.h>

/* A picture of the agent. Strings are borrowed. */
typedef struct AgentMetrics {
        const char *node_name;

        unsigned pods_desired; /* by manifests that are in use */
        unsigned pods;         /* that exist, those being stopped included */
        unsigned pods_running; /* phase Running */

        unsigned containers_created; /* by the state of each container's latest attempt */
        unsigned containers_running;
        unsigned containers_exited;
        unsigned containers_unknown;

        uint64_t pods_started; /* since the agent started */
        uint64_t containers_started;
        uint64_t containers_start_errors;
        uint64_t containers_restarted; /* of those started, the ones that were not the first */

        unsigned manifests_broken;
        const char *manifest_error;           /* the first of them, with its place; NULL: none */
        const char *manifest_directory_error; /* why the directory cannot be read; NULL: it can */
        unsigned archives_broken;
        const char *api_server_error; /* with the API server; NULL: none, or there is no server */

        const NodeConditions *conditions; /* NULL: not known */
        const uint64_t *evictions;        /* N_EVICTION_SIGNALS; likewise */

        const ProbeSample *probes;
        size_t n_probes;
} AgentMetrics;

typedef struct ServiceNotifier ServiceNotifier;

/* NULL where memory ends. Where NOTIFY_SOCKET is not set, all that follows does nothing. */
ServiceNotifier *service_notifier_new(void);

/* Whether somebody listens: only then is it worth the work to count. */
bool service_notifier_has_socket(const ServiceNotifier *notifier);

/* READY=1, once: when the first scan has been acted on. */
void service_notifier_ready(ServiceNotifier *notifier);

/* STATUS= in words ("3 pods, 3 running; 1 manifest broken: web.yaml:7:11: …"), if they are not the
 * ones that were sent last. Cheap to call every turn. */
void service_notifier_status(ServiceNotifier *notifier, const AgentMetrics *counts);

/* RELOADING=1 and, when what was read has been acted on, READY=1; neither before the first
 * READY=1. */
void service_notifier_begin_reload(ServiceNotifier *notifier);
void service_notifier_end_reload(ServiceNotifier *notifier);
static inline void service_notifier_end_reloadp(ServiceNotifier **notifier) {
        service_notifier_end_reload(*notifier);
}

/* STOPPING=1, once. */
void service_notifier_stopping(ServiceNotifier *notifier);

/* The stop takes as long as this, from now on, and systemd waits for it. */
void service_notifier_extend_stop_timeout(ServiceNotifier *notifier, uint64_t usec);

ServiceNotifier *service_notifier_free(ServiceNotifier *notifier);
DEFINE_CLEANUP(ServiceNotifier *, service_notifier_free)

/* The words of STATUS=, in memory that the caller frees, or NULL. */
char *agent_metrics_format_status(const AgentMetrics *counts);

/* The Prometheus text format, version 0.0.4, under the kubelet's names where it has one, and of
 * this process. In memory that the caller frees, or NULL. */
char *agent_metrics_format(const AgentMetrics *counts);
