/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What pods ask of this node: its labels, which are the well-known ones, what os-release says and
 * what the configuration adds; and its taints, with the time since when each is there. */

#include "agent/model/config.h"
#include "agent/model/node.h"
#include "common/clock.h"
#include "common/error.h"

/* What the node is when the agent starts. A taint of NoExecute whose time nobody says is there
 * since an earlier agent saw it first, or since now; that is kept below the state directory. 0, or
 * -ENOMEM. */
int facts_load(const Config *config, const char *node_name, const char *hostname,
               const char *state_dir, const SteadyClock *clock, NodeFacts *ret, Error *reterr);

/* The node has these conditions, each with its taint. 1 where the facts are others now; 0; -ENOMEM,
 * and then they are as they were. */
int facts_set_conditions(const Config *config, const char *hostname, const SteadyClock *clock,
                         unsigned conditions, NodeFacts *facts);

/* Reads the configuration again. 1 where the facts are others now; 0; or -errno with the sentence,
 * and then they are as they were: a file that is broken or gone is no order to do without labels.
 * That other settings than these wait for the next start is said in the log. */
int facts_reload(const char *config_path, const Config *running, const char *hostname,
                 const char *state_dir, const SteadyClock *clock, NodeFacts *facts, Error *reterr);
