/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The command of a session (kubectl exec): the process that starts the runtime, waits for the
 * command and kills it. It has the shim's rights, so what the command and the client write is
 * copied by a child of it that has none (session-run.h). For a task. */

#include "agent/shim/session-runtime.h"

/* Returns when the session has ended, or the command was killed because the client has
 * disconnected. 0 or -errno. */
int session_command_run(const SessionSpec *spec);
