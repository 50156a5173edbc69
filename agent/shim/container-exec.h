/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Exec (CRI: ExecSync): programs that the agent requests to run to their end, for their output.
 *
 * Network plugins (CNI) and other programs of the pod run in the shim's mount namespace; in the
 * pod's network and UTS namespaces or, when they set up the pod's network, in the node's. Exec
 * probes and hooks run in a container: the runtime starts them and leaves them to us. Results are
 * not kept: without a connected agent they are dropped. So is a program that still waits for its
 * turn when the pod is terminated. Sessions of users are not here but in shim-session.h. */

#include "agent/sandbox/protocol.h"
#include "agent/shim/program-list.h"

#include <sys/types.h>

typedef struct Shim Shim;
/* Handles both kinds of requests. Runs the program, or queues it behind the one before it if both
 * run in the node's namespaces. SHIM_EVENT_EXEC_DONE follows, unless the pod is terminated before
 * its turn. */
void program_run(Shim *shim, const ShimRequest *request);

/* True if 'pid' was a program in a container. */
bool program_reap(Shim *shim, pid_t pid, int status);

/* The runtime is about to leave us a process. */
bool programs_are_starting(const ProgramList *list);

/* Kills programs in containers whose timeout has passed; the others are tasks with deadlines. */
uint64_t programs_next_deadline(const ProgramList *list);
void programs_kill_timed_out(ProgramList *list, uint64_t now_awake);

/* A new copier captures the output of all programs in containers. */
void programs_send_captures(ProgramList *list);

/* The copier has captured this of the program with that capture, if there is one. 'text' has
 * 'length' bytes and a NUL. */
void program_take_captured(Shim *shim, unsigned id, const char *text, size_t length);

/* Drops programs that have not started. */
void programs_drop_waiting(ProgramList *list);

/* Frees all; their processes are ended by the tasks. */
void programs_free(ProgramList *list);
