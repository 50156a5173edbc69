/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The process of one session (kubectl exec): it connects a WebSocket with a command that the
 * runtime starts in a container. For a task. */

#include "agent/shim/session-runtime.h"

/* Returns when the command has ended, or was killed because the client has disconnected. 0 or
 * -errno. */
int session_run(const SessionSpec *spec);
