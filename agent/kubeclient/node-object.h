/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Node as JSON: registration, status patch, and parsing of the server's object. Pure. */

#include "agent/model/node-status.h"
#include "agent/model/node.h"

#include <jansson.h>
#include <stdint.h>

/* The body of the registration: local labels and taints, and the status. 'now' is realtime. The
 * caller frees it; NULL: out of memory. */
char *node_object_new(const NodeLabelsTaints *own, const NodeStatus *status, uint64_t now);

/* The strategic merge patch for /status that makes the server's Node ('known') equal to the local
 * one: local labels (node-local-labels.h; 'own' NULL: unchanged), and the status without the fields
 * of other writers. 1 with the patch, which the caller frees; 0 if nothing differs, unless
 * 'heartbeat' is set; -EBADMSG if 'known' is not a Node; -ENOMEM. */
int node_object_patch(const json_t *known, const NodeLabelsTaints *own, const NodeStatus *status,
                      uint64_t now, bool heartbeat, char **ret_patch);

/* Parses a Node: its name, its external labels and taints, its UID. The caller frees the strings.
 * 0, -EBADMSG if it is not a Node, -ENOMEM. */
int node_object_parse(const json_t *node, NodeLabelsTaints *ret_external, char **ret_uid,
                      char **ret_version);
