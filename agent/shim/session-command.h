/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The command of a session (kubectl exec): the process that starts the runtime, waits for the
 * command and kills it. It has the shim's privileges, so an unprivileged child copies the output of
 * the command and the input of the client (session-run.h). To be called in a task. */

#include "agent/shim/session-runtime.h"

/* Returns when the session has ended, or the command was killed because the client has
 * disconnected. 0 or -errno. */
int session_command_run(const SessionSpec *spec);
