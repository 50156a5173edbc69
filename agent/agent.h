/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent (mainstayd): builds the modules, connects their callbacks and runs the event loop. The
 * wiring decides nothing: policies are in the modules. */

#include "common/error.h"

#include <stdbool.h>

/* Options of the command line; NULL: not given. */
typedef struct AgentOptions {
        const char *config_path;
        const char *manifest_dir;
        const char *state_dir;
        const char *run_dir;
        const char *log_dir;
        const char *node_name;
        const char *kubeconfig;           /* of an API server to join; NULL: as configured */
        const char *bootstrap_kubeconfig; /* likewise, to request the other one */
        const char *cert_dir;             /* of the issued client certificate */
        const char *node_ip;
        const char *node_labels;          /* "key=value,..." */
        const char *register_with_taints; /* "key=value:effect,..." */
        bool drain; /* stop all pods, remove what they left, and exit; no manifest is read */
} AgentOptions;

/* Runs until SIGTERM or SIGINT, or, draining, until no pod is left. 0, or -errno with a message:
 * -EBUSY where a second agent holds the run directory. The caller has blocked SIGTERM, SIGINT,
 * SIGHUP and SIGCHLD. */
int agent_run(const AgentOptions *options, Error *reterr);
