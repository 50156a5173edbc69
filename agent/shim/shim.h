/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pod sandbox: holds the namespaces and mounts that a pod's containers share, runs them, writes
 * their logs and keeps their exit codes. It makes no decisions.
 *
 * Everything that may block runs in a task (task.h); this process only reads, writes and keeps
 * state. */

#include "agent/shim/sandbox-process.h"

/* Serves the socket on standard input until the pod is terminated. 0 or -errno. */
int shim_main(const ShimOptions *options);
