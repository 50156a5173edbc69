/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent (mainstayd): builds the modules, connects their callbacks and runs the event loop. The
 * wiring makes no decisions: policies are in the modules. */

#include "agent/model/agent-options.h"
#include "common/error.h"

/* Runs until SIGTERM or SIGINT or, when draining, until no pod is left. 0; EXIT_FAILURE if draining
 * could not remove everything that pods have left, which is logged; or -errno with a message:
 * -EBUSY if another agent has locked the run directory. The caller must have blocked SIGTERM,
 * SIGINT, SIGHUP and SIGCHLD.
 */
int agent_run(const AgentOptions *options, Error *reterr);
