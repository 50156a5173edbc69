/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a session's command is started: the runtime's "exec --detach", as our child. */

#include "agent/shim/session-run.h"

#include <sys/types.h>

/* Starts it with these descriptors as its first three (-EBADF: /dev/null), or with a terminal whose
 * master side it sends to the socket 'terminal'. What it says of a failure is in
 * <directory>/runtime.log, and the command's number in <directory>/pid. 0 or -errno. */
int session_start_runtime(const SessionSpec *spec, const char *terminal, const int fds[3],
                          pid_t *ret_pid);

/* The command's number, when the runtime has ended well. 0 or -errno. */
int session_read_pid(const SessionSpec *spec, pid_t *ret);
