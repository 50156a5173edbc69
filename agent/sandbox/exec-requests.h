/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The commands that a shim runs for the agent, until their results arrive. */

#include "agent/sandbox/protocol.h"

/* A command that the shim was requested to run. The caller owns it until its callback is called, or
 * until sandbox_exec_cancel(); the sandbox may be freed earlier. */
typedef struct SandboxExec SandboxExec;

/* The result, called from the loop: exit_code, signal, timed_out, output, error; 'message' is "",
 * or the reason why the command could not be run. Strings are valid only during the call. */
typedef void (*sandbox_exec_done_t)(const ShimEvent *result, void *userdata);

/* No callback follows, although the command may still run. NULL is allowed. Returns NULL. */
SandboxExec *sandbox_exec_cancel(SandboxExec *exec);

/* ---- for the sandbox ---- */

/* Adds a request to the list, with an ID that no other request has, not even a request of an
 * earlier agent. NULL: out of memory. */
SandboxExec *exec_requests_add(SandboxExec **list, sandbox_exec_done_t done, void *userdata);

/* Valid as long as the request exists. */
const char *exec_request_id(const SandboxExec *exec);

/* Passes the result, SHIM_EVENT_EXEC_DONE, on to the caller if it is still waiting. */
void exec_requests_finish(SandboxExec **list, const ShimEvent *result);

/* The sandbox is freed before its waiting requests. */
void exec_requests_abandon(SandboxExec **list);
