/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of a v1.NodeStatus as JSON, for the files node-*.c of this module. */

#include "agent/model/node-status.h"

#include <jansson.h>
#include <stdint.h>

/* The status without its conditions. NULL: out of memory. */
json_t *node_status_to_json(const NodeStatus *status);

/* The conditions that a node reports, in order: pressure; ReadonlyFilesystem, if it applies; Ready;
 * Refused, if a permission is missing; and those of configured sources. */
enum {
        NODE_REPORTED_READY = N_NODE_CONDITIONS,
        NODE_REPORTED_REFUSED,
        NODE_REPORTED_SOURCES, /* in the order of node_source_infos */
        N_NODE_REPORTED_CONDITIONS = NODE_REPORTED_SOURCES + NODE_SOURCES_MAX,
};

const char *node_reported_condition_name(unsigned condition);

/* Whether the condition is reported although the Node does not have it yet. */
bool node_has_reported_condition(const NodeStatus *status, unsigned condition);

/* The time of its last change; 0: unknown. */
uint64_t node_reported_condition_since(const NodeStatus *status, unsigned condition);

/* One condition with all its members. */
json_t *node_condition_to_json(const NodeStatus *status, unsigned condition, uint64_t since,
                               uint64_t now);
