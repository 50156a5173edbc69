/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The user namespace of a pod (hostUsers: false). The shim itself stays in the node's user
 * namespace; that of the pod owns the pod's network, IPC and UTS namespaces, so that root in the
 * pod has root's privileges in them. */

#include "common/error.h"

/* Reads the agent's file <pod-dir>/user-namespace: the ID on the node that corresponds to the pod's
 * root. 1; 0 if the pod uses the node's IDs; -errno. */
int user_namespace_read(const char *pod_dir, unsigned *ret_first_id);

/* Creates the user namespace, and enters new 'namespaces' (CLONE_NEWNET, CLONE_NEWIPC,
 * CLONE_NEWUTS) that belong to it. '*ret_fd' keeps it open. 0 or -errno. */
int user_namespace_enter(unsigned first_id, int namespaces, int *ret_fd, Error *reterr);

/* Binds the user namespace to the path at which runtimes expect it: <pod-dir>/user-namespace. To be
 * called in a task. 0 or -errno. */
int user_namespace_bind(const char *pod_dir, int fd, Error *reterr);
