/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* If systemd does not do it (mainstay-api.socket): listens for the kubelet's API, and starts
 * mainstay-api when a client connects. mainstay-api exits when it is idle. */

#include "agent/model/config.h"

#include <systemd/sd-event.h>

typedef struct NodeApiLauncher NodeApiLauncher;

typedef struct NodeApiLauncherSpec { /* all is borrowed */
        sd_event *event;
        const Config *config;
        bool has_systemd; /* as PID 1 */
        bool has_joined;  /* an API server, whose clients expect the kubelet's API */
        char *program;
        char *agent_socket;
        /* Whether there is the user that the program runs as; it may use the agent's socket then.
         */
        bool (*admit_user)(void *userdata);
        void *userdata;
} NodeApiLauncherSpec;

/* Listens if 'enableServer' of the configuration is true. A failure is logged, and a port that is
 * in use is tried again. With systemd a configuration that the unit contradicts is logged.
 * '*ret' is NULL if there is nothing to do. */
void node_api_launcher_start(const NodeApiLauncherSpec *spec, NodeApiLauncher **ret);

/* A mainstay-api that runs keeps its clients and accepts no more of them. NULL is fine. */
NodeApiLauncher *node_api_launcher_free(NodeApiLauncher *launcher);
