/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The header of the module. Pod statuses, events and the Node are sent to a URL, as lines of JSON,
 * at most once per interval. Unsent lines wait in a bounded queue, which outlives the agent. While
 * nothing changes and nothing waits, no timer runs and nothing is written. A line may arrive twice,
 * if the agent ends after the response and before the response is recorded. No line is sent before
 * the pods of an earlier agent are known. All functions except the first accept NULL, which means
 * that no report is configured. */

#include "agent/metrics/event-store.h"
#include "agent/model/node-status.h"
#include "agent/node/agent-paths.h"
#include "agent/pods/manager/pod-manager.h"

typedef struct StatusReport StatusReport;

/* Everything is borrowed and outlives it. */
typedef struct StatusReportConfig {
        sd_event *event;
        const Config *config;
        const AgentPaths *paths;
        const char *node_name;
        PodManager *pods;
        const EventStore *events;
        char *(*print_node)(void *userdata); /* a v1.Node that the caller frees, or NULL */
        void (*on_event)(const PodEvent *event, void *userdata);
        void (*on_status)(void *userdata); /* status_report_add_to() has a different result */
        void *userdata;
} StatusReportConfig;

/* '*ret' is NULL if no report is configured. 0 or -errno. */
int status_report_new(const StatusReportConfig *config, StatusReport **ret);

/* Writes waiting lines to the disk; ends a request in progress. */
StatusReport *status_report_free(StatusReport *report);
DEFINE_CLEANUP(StatusReport *, status_report_free)

/* Called when a pod has changed or is gone; and when events have been recorded. */
void status_report_pod(StatusReport *report, const Pod *pod, bool is_gone);
void status_report_events(StatusReport *report);

/* The sources, followed by the state of the report; borrowed until the next call. */
NodeSources status_report_add_to(StatusReport *report, NodeSources sources);
