/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The PID namespace that all containers of a pod share (shareProcessNamespace). Its first process
 * belongs to the shim and only reaps orphans. Because that process is visible to the containers, it
 * has no privileges, files or variables of the node, and its program (agent/pause/) is not a file
 * of the node. */

#include "common/error.h"

#include <sys/types.h>

/* Creates the namespace if <pod_dir>/pid-namespace exists, where pid_namespace_bind() mounts it.
 * The first process dies with the caller. The namespace belongs to the user namespace 'users_fd',
 * or to the caller's if that is < 0. 1 and its pid, once it is confined; 0 if it is not requested;
 * -errno.
 */
int pid_namespace_start(const char *pod_dir, int users_fd, pid_t *ret_pid);

/* Binds the PID namespace of that process to <pod_dir>/pid-namespace, for the runtime. */
int pid_namespace_bind(const char *pod_dir, pid_t pid, Error *reterr);

/* Binds the namespace of a descriptor, which is that of the target of an ephemeral container, to
 * <bundle>/pid-namespace. */
int pid_namespace_bind_fd(const char *bundle, int fd, Error *reterr);

/* Kills the first process, and with it everything in the namespace. 0 means no process. */
void pid_namespace_end(pid_t pid);
