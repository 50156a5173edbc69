/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The command line of mainstayd. */

#include <stdbool.h>

/* The environment variable in which the program 'kubelet' passes flags that have no effect: "--a,
 * --b". */
#define KUBELET_FLAGS_VARIABLE "MAINSTAY_KUBELET_FLAGS"

/* Options of the command line. NULL: not given; the first five are never NULL. */
typedef struct AgentOptions {
        const char *config_path;
        const char *state_dir;
        const char *run_dir;
        const char *log_dir;
        const char *kubelet_dir; /* the kubelet's root directory, which its plugins use */
        const char *config_dir;  /* directory of configuration drop-ins */
        const char *manifest_dir;
        const char *node_name;
        const char *kubeconfig;           /* of the API server to join; NULL: as configured */
        const char *bootstrap_kubeconfig; /* likewise, to request the kubeconfig above */
        const char *cert_dir;             /* directory of the issued client certificate */
        const char *node_ip;
        const char *node_labels;          /* "key=value,..." */
        const char *register_with_taints; /* "key=value:effect,..." */
        bool drain; /* stop all pods, remove their remains, and exit; no manifest is read */
} AgentOptions;
