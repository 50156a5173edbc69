/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Listens for the kubelet's API and starts mainstay-api when a client connects, unless systemd does
 * so (mainstay-api.socket). mainstay-api exits when it is idle. */

#include "agent/model/config.h"

#include <systemd/sd-event.h>

typedef struct NodeApiLauncher NodeApiLauncher;

typedef struct NodeApiLauncherSpec { /* all members are borrowed */
        sd_event *event;
        const Config *config;
        bool has_systemd; /* systemd is PID 1 */
        bool has_joined;  /* the node has joined an API server, whose clients expect the kubelet's
                           * API */
        char *program;
        char *agent_socket;
        /* Whether the program's user exists; if so, that user may use the agent's socket from now
         * on. */
        bool (*admit_user)(void *userdata);
        void *userdata;
} NodeApiLauncherSpec;

/* Listens if 'enableServer' of the configuration is true. A failure is logged, and a port that is
 * in use is tried again. With systemd, a configuration that contradicts the unit is logged. '*ret'
 * is NULL if there is nothing to do. */
void node_api_launcher_start(const NodeApiLauncherSpec *spec, NodeApiLauncher **ret);

/* A running mainstay-api keeps its clients but accepts no new ones. NULL is allowed. */
NodeApiLauncher *node_api_launcher_free(NodeApiLauncher *launcher);
