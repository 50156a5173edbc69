/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent (mainstayd): builds the modules, connects their callbacks and runs the event loop. The
 * wiring decides nothing: policies are in the modules. */

#include "agent/model/agent-options.h"
#include "common/error.h"

/* Runs until SIGTERM or SIGINT, or, draining, until no pod is left. 0; EXIT_FAILURE if draining
 * could not remove the remains of pods, which are logged; or -errno with a message: -EBUSY if a
 * second agent holds the run directory. The caller has blocked SIGTERM, SIGINT, SIGHUP and SIGCHLD.
 */
int agent_run(const AgentOptions *options, Error *reterr);
