/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of a v1.NodeStatus as JSON; for the files node-….c of this room. */

#include "agent/model/node-status.h"

#include <jansson.h>
#include <stdint.h>

/* All of a status but its conditions. NULL where memory ends. */
json_t *node_json_status(const NodeStatus *status);

/* The conditions that a node tells of itself, in their order: those of pressure, then Ready, and
 * where there is something to say what it was refused. */
enum {
        NODE_CLAIM_READY = N_NODE_CONDITIONS,
        NODE_CLAIM_REFUSED,
        N_NODE_CLAIMS,
};

const char *node_claim_name(unsigned claim);

/* Since when it is as it is; 0: nobody says. */
uint64_t node_claim_since(const NodeStatus *status, unsigned claim);

/* One condition, complete. */
json_t *node_json_condition(const NodeStatus *status, unsigned claim, uint64_t since, uint64_t now);
