/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Programs that the agent asks us to run to their end, for their output: network plugins, and what
 * else must run where the pod is. In the shim's mount namespace; in the pod's network and UTS
 * namespaces or, for those that arrange the pod's network, in the node's. Nothing of them survives:
 * a result that nobody is connected to hear is dropped, and so is a program that waits for its turn
 * when the pod is torn down. */

#include "agent/sandbox/protocol.h"

typedef struct Shim Shim;
typedef struct Program Program;

typedef struct ProgramList {
        Program *first; /* running and waiting, in the order of the requests */
} ProgramList;

/* Runs it, or has it wait for the one before it where both are in the node's namespaces.
 * EVENT_EXEC_DONE is told, unless the pod is torn down before it had its turn. */
void program_run(Shim *shim, const Request *request);

/* Forgets those that have not begun. */
void programs_drop_waiting(ProgramList *list);

/* Forgets all; their processes are the tasks' business. */
void programs_free(ProgramList *list);
