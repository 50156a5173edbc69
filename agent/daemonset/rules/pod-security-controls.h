/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The controls of the Pod Security Standards: each one checks one property of all containers of a
 * pod (init, main and ephemeral ones), and describes violations with the wording of the API server.
 * The table in pod-security.c determines when a control is in force. */

#include "agent/model/pod.h"

#include <stdio.h>

typedef struct PodSecurityReview {
        const Pod *pod;
        unsigned minor; /* minor version by which the pod is checked, because some controls were
                         * relaxed */
        FILE *out;      /* violations found so far */
        unsigned n_violations;
        bool has_failed; /* out of memory, so the result is incomplete */
} PodSecurityReview;

/* Controls of the level baseline. */
void check_app_armor_profiles(PodSecurityReview *review);
void check_added_capabilities(PodSecurityReview *review);
void check_host_namespaces(PodSecurityReview *review);
void check_host_path_volumes(PodSecurityReview *review);
void check_ports_of_host(PodSecurityReview *review);
void check_handler_hosts(PodSecurityReview *review); /* hosts of probes and hooks */
void check_privileged_containers(PodSecurityReview *review);
void check_proc_mounts(PodSecurityReview *review); /* since 1.35, except for pods with a user
                                                    * namespace */
void check_se_linux_options(PodSecurityReview *review);
void check_seccomp_profiles(PodSecurityReview *review);
void check_sysctls(PodSecurityReview *review);
void check_windows_host_process(PodSecurityReview *review);

/* Controls of the level restricted. */
void check_privilege_escalation(PodSecurityReview *review);
void check_dropped_capabilities(PodSecurityReview *review);
void check_proc_mounts_of_all(PodSecurityReview *review); /* including pods with a user namespace */
void check_volume_types(PodSecurityReview *review);
void check_run_as_non_root(PodSecurityReview *review);
void check_run_as_user(PodSecurityReview *review);
void check_required_seccomp_profiles(PodSecurityReview *review);
