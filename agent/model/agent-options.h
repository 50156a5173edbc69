/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The command line of mainstayd. */

#include <stdbool.h>

/* The variable with which the program kubelet passes on flags that have no effect: "--a, --b". */
#define KUBELET_FLAGS_VARIABLE "MAINSTAY_KUBELET_FLAGS"

/* Options of the command line; NULL: not given, which the first five are never. */
typedef struct AgentOptions {
        const char *config_path;
        const char *state_dir;
        const char *run_dir;
        const char *log_dir;
        const char *kubelet_dir; /* the kubelet's root directory, which its plugins use */
        const char *config_dir;  /* of drop-ins of the configuration */
        const char *manifest_dir;
        const char *node_name;
        const char *kubeconfig;           /* of an API server to join; NULL: as configured */
        const char *bootstrap_kubeconfig; /* the same, to request the other one */
        const char *cert_dir;             /* of the issued client certificate */
        const char *node_ip;
        const char *node_labels;          /* "key=value,..." */
        const char *register_with_taints; /* "key=value:effect,..." */
        bool drain; /* stop all pods, remove their remains, and exit; no manifest is read */
} AgentOptions;
