/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The user namespace of a pod (hostUsers: false). The shim itself stays in the node's; the pod's
 * network, IPC and UTS namespaces belong to the pod's, so that root in the pod has root's rights
 * over them. */

#include "common/error.h"

/* Reads the agent's file <pod-dir>/user-namespace: the ID on the node of the pod's root. 1; 0 if
 * the pod uses the node's IDs; -errno. */
int user_namespace_read(const char *pod_dir, unsigned *ret_first_id);

/* Creates the user namespace, and enters those of 'namespaces' (CLONE_NEWNET, CLONE_NEWIPC,
 * CLONE_NEWUTS) that belong to it. '*ret_fd' holds it. 0 or -errno. */
int user_namespace_enter(unsigned first_id, int namespaces, int *ret_fd, Error *reterr);

/* Binds it to the path at which runtimes find it: <pod-dir>/user-namespace. In a task. 0 or
 * -errno. */
int user_namespace_bind(const char *pod_dir, int fd, Error *reterr);
