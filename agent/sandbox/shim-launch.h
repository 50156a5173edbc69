/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The one place that knows how a shim becomes a process: by systemd where that is PID 1, else as a
 * detached child of ours. */

#include "agent/sandbox/sandbox.h"

/* Starts the shim of a pod on a listening socket. '*ret_pid' is 0 where it is not known yet: the
 * shim says it itself. */
int shim_launch(const SandboxConfig *config, const char *uid, const SandboxStartOptions *start,
                int listen_fd, pid_t *ret_pid, Error *reterr);

/* Appends "--cgroup=…" for each group that a shim of the pod may live in, by whatever agent it was
 * started. */
int shim_append_cgroup_options(const SandboxConfig *config, const char *uid, char ***argv);
