/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Programs that the agent asks us to run to their end, for their output: network plugins, and what
 * else must run where the pod is, in the shim's mount namespace; in the pod's network and UTS
 * namespaces or, for those that arrange the pod's network, in the node's. And programs in a
 * container, for probes and hooks, which the runtime starts and leaves to us. Nothing of them
 * survives: a result that nobody is connected to hear is dropped, and so is a program that waits
 * for its turn when the pod is torn down. */

#include "agent/sandbox/protocol.h"

#include <sys/types.h>

typedef struct Shim Shim;
typedef struct Program Program;

typedef struct ProgramList {
        Program *first; /* running and waiting, in the order of the requests */
} ProgramList;

/* Of both kinds of requests. Runs it, or has it wait for the one before it where both are in the
 * node's namespaces. SHIM_EVENT_EXEC_DONE is told, unless the pod is torn down before it had its
 * turn.
 */
void program_run(Shim *shim, const ShimRequest *request);

/* True when 'pid' was a program in a container. */
bool program_reap(Shim *shim, pid_t pid, int status);

/* The runtime is about to leave us a process. */
bool programs_are_starting(const ProgramList *list);

/* SIGKILL for those in containers whose time is over; the others are tasks. */
uint64_t programs_next_deadline(const ProgramList *list);
void programs_expire(ProgramList *list, uint64_t now_boottime);

/* Forgets those that have not begun. */
void programs_drop_waiting(ProgramList *list);

/* Forgets all; their processes are the tasks' business. */
void programs_free(ProgramList *list);
