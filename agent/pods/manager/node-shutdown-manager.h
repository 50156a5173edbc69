/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Graceful node shutdown (GracefulNodeShutdown), the kubelet's nodeshutdown manager: logind
 * announces a shutdown, or PID 1 stops the agent because of one, and pods are stopped stage by
 * stage before the machine shuts down. If only the agent is stopped, pods keep running.
 * pod-manager.h describes how the pods of a stage are stopped. */

#include "agent/metrics/service-notifier.h"
#include "agent/pods/manager/pod-manager.h"
#include "agent/sandbox/systemd-client.h"

typedef struct NodeShutdownManager NodeShutdownManager;

/* Everything is borrowed and outlives the manager. */
typedef struct NodeShutdownConfig {
        sd_event *event;
        PodManager *pod_manager;
        SystemdClient *systemd; /* NULL: systemd is not PID 1 */
        ServiceNotifier *notifier;
        const ShutdownStage *stages; /* sorted; empty: pods are not stopped */
        size_t n_stages;
        /* SIGTERM or SIGINT arrived: the agent will exit. */
        void (*on_terminating)(void *userdata);
        /* Pods are about to be stopped; or the shutdown was cancelled. */
        void (*on_shutting_down)(bool is_shutting_down, void *userdata);
        void *userdata;
} NodeShutdownConfig;

/* Handles SIGTERM and SIGINT, which are blocked. 0 or -errno. */
int node_shutdown_manager_new(const NodeShutdownConfig *config, NodeShutdownManager **ret);
NodeShutdownManager *node_shutdown_manager_free(NodeShutdownManager *manager);
DEFINE_CLEANUP(NodeShutdownManager *, node_shutdown_manager_free)

/* Delays shutdowns (an inhibitor lock of logind) if the configuration gives pods time to terminate.
 * 0 or -ENOMEM. */
int node_shutdown_manager_start(NodeShutdownManager *manager);
