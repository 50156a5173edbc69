/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What pods ask of this node: its labels, which are the well-known ones, what os-release says and
 * what the configuration adds; and its taints, with the time since when each is there. */

#include "agent/model/config.h"
#include "agent/model/node.h"
#include "common/error.h"

/* From the configuration and the machine. A taint of NoExecute that says no time is there since
 * 'before', the facts as they were, had it first; else since now. 0 or -ENOMEM. */
int facts_gather(const Config *config, const char *node_name, const char *hostname,
                 const NodeFacts *before, NodeFacts *ret);

/* Since when taints are there outlives the agent: only the taints of 'ret' are read. Damaged, it is
 * none. */
int facts_load_taints(const char *state_dir, NodeFacts *ret);
int facts_store_taints(const char *state_dir, const NodeFacts *facts, Error *reterr);
