/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The PID namespace that all containers of a pod share, where the pod asks for it: with a first
 * process of ours, which does nothing but reap what containers leave behind. */

#include "common/error.h"

#include <sys/types.h>

/* Makes the namespace, if <pod_dir>/pid-namespace is there, for pid_namespace_bind() to put it
 * over. The first process dies with the caller. It belongs to the users of 'users_fd', a namespace,
 * or < 0: to ours. 1 and its pid; 0 where none is asked for; -errno. */
int pid_namespace_start(const char *pod_dir, int users_fd, pid_t *ret_pid);

/* Makes the namespace of that process visible as <pod_dir>/pid-namespace, for the runtime. */
int pid_namespace_bind(const char *pod_dir, pid_t pid, Error *reterr);

/* Ends the process and so the namespace with all that is in it. 0 is no process. */
void pid_namespace_end(pid_t pid);
