/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The user namespace of a pod that has users of its own. The shim itself stays among the node's
 * users; the pod's network, IPC and UTS namespaces belong to the pod's, so that who is root in
 * there may do there what root may. */

#include "common/error.h"

/* The agent's file <pod-dir>/user-namespace holds the node's ID of the pod's root. 1; 0 where the
 * pod has the node's users; -errno. */
int user_namespace_read(const char *pod_dir, unsigned *ret_first_id);

/* Makes the user namespace, and enters those of 'namespaces' (CLONE_NEWNET, CLONE_NEWIPC,
 * CLONE_NEWUTS) that belong to it. '*ret_fd' keeps it. 0 or -errno. */
int user_namespace_enter(unsigned first_id, int namespaces, int *ret_fd, Error *reterr);

/* Puts it where runtimes find it: <pod-dir>/user-namespace. In a task. 0 or -errno. */
int user_namespace_bind(const char *pod_dir, int fd, Error *reterr);
