/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Exec (CRI: ExecSync): runs programs to completion at the agent's request, and returns their
 * output.
 *
 * Network plugins (CNI) and other programs of the pod run in the shim's mount namespace; in the
 * pod's network and UTS namespaces or, if they set up the pod's network, in the node's. Exec probes
 * and hooks run in a container: the runtime starts them, and they become children of the shim.
 * Results are not kept: without a connected agent they are dropped. A program that is still waiting
 * for its turn when the pod is terminated is also dropped. Interactive sessions are in
 * shim-session.h. */

#include "agent/sandbox/protocol.h"
#include "agent/shim/program-list.h"

#include <sys/types.h>

typedef struct Shim Shim;
/* Handles both kinds of requests. Runs the program, or queues it behind the previous one if both
 * run in the node's namespaces. SHIM_EVENT_EXEC_DONE follows, unless the pod is terminated before
 * the program's turn. */
void program_run(Shim *shim, const ShimRequest *request);

/* True if 'pid' was a program in a container. */
bool program_reap(Shim *shim, pid_t pid, int status);

/* Whether the runtime is about to start a process that becomes a child of the shim. */
bool programs_are_starting(const ProgramList *list);

/* Kills programs in containers whose timeout has passed; the others are tasks with deadlines.
 * Returns the next deadline. */
uint64_t programs_next_deadline(const ProgramList *list);
void programs_kill_timed_out(ProgramList *list, uint64_t now_awake);

/* For a new copier: makes it capture the output of all programs in containers. */
void programs_send_captures(ProgramList *list);

/* The copier has captured the output of the program with that capture ID; there may be no such
 * program. 'text' has 'length' bytes and a NUL. */
void program_take_captured(Shim *shim, unsigned id, const char *text, size_t length);

/* Drops programs that have not started. */
void programs_drop_waiting(ProgramList *list);

/* Frees all programs; tasks end their processes. */
void programs_free(ProgramList *list);
