/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How the agent ends: alone, and pods go on; or with the machine, and it stops them first. That the
 * machine goes down is heard from logind before anything is stopped, or else asked of PID 1 when
 * that stops us. */

#include "agent/agent-private.h"

/* SIGTERM and SIGINT. 0 or -errno. */
int watch_termination_signals(Agent *agent);

/* Holds shutdowns back where the configuration gives pods time to end. 0 or -ENOMEM. */
int watch_node_shutdown(Agent *agent);
