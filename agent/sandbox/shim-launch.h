/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Starts the process of a shim: by systemd if it is PID 1, otherwise as a detached child of the
 * agent. */

#include "agent/sandbox/sandbox-config.h"
#include "common/error.h"

#include <sys/types.h>

/* Starts the shim of a pod on a listening socket. '*ret_pid' is 0 if it is not known yet: the
 * shim's greeting contains it. */
int shim_launch(const SandboxConfig *config, const char *uid, const SandboxStartOptions *start,
                int listen_fd, pid_t *ret_pid, Error *reterr);

/* Appends "--shim-cgroup=…" for each cgroup in which a shim of the pod may be running, whichever
 * agent started it. */
int shim_append_cgroup_options(const SandboxConfig *config, const char *uid, char ***argv);

/* The cgroup below which the agent currently starts all shims. Borrowed; NULL: they stay in the
 * agent's own. */
const char *shim_group_of_all(const SandboxConfig *config);
