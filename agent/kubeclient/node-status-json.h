/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of a v1.NodeStatus as JSON; for the files node-….c of this room. */

#include "agent/model/node-status.h"

#include <jansson.h>
#include <stdint.h>

/* All of a status but its conditions. NULL where memory ends. */
json_t *node_status_to_json(const NodeStatus *status);

/* The conditions that a node tells of itself, in their order: those of pressure, then Ready, and
 * where there is something to say what it was refused. */
enum {
        NODE_REPORTED_READY = N_NODE_CONDITIONS,
        NODE_REPORTED_REFUSED,
        N_NODE_REPORTED_CONDITIONS,
};

const char *node_reported_condition_name(unsigned condition);

/* Since when it is as it is; 0: nobody says. */
uint64_t node_reported_condition_since(const NodeStatus *status, unsigned condition);

/* One condition, complete. */
json_t *node_condition_to_json(const NodeStatus *status, unsigned condition, uint64_t since,
                               uint64_t now);
