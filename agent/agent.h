/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent: builds the rooms, connects their doors, runs the loop; decides nothing. */

#include "common/error.h"

#include <stdbool.h>

/* As the command line says; NULL where it says nothing. */
typedef struct AgentOptions {
        const char *config_path;
        const char *manifest_dir;
        const char *state_dir;
        const char *run_dir;
        const char *log_dir;
        const char *node_name;
        const char *kubeconfig; /* of an API server to join; NULL: as the configuration says */
        const char *bootstrap_kubeconfig; /* likewise, to get the other one with */
        bool drain; /* stop all pods, remove what they left, and end; manifests are not looked at */
} AgentOptions;

/* Runs until it is told to end, or, draining, until no pod is left. 0, or -errno with the sentence:
 * -EBUSY where another agent has the run directory. Signals are blocked already: SIGTERM, SIGINT,
 * SIGHUP, SIGCHLD. */
int agent_run(const AgentOptions *options, Error *reterr);
