/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Node of the API: how it is registered, what is changed in it when the machine is another, and
 * what it says to us. Pure: JSON in, JSON out. */

#include "agent/model/node-status.h"
#include "agent/model/node.h"

#include <stdint.h>

/* The body that registers: what the node says of itself, and its status. 'now' is realtime. The
 * caller frees it; NULL where memory ends. */
char *node_object_new(const NodeLabelsTaints *own, const NodeStatus *status, uint64_t now);

/* The strategic merge patch for /status that brings what the server knows ('known', a Node) to what
 * is: the labels that are the node's own (node-owned.h; 'own' NULL: they stay as they are), and all
 * of the status but what others write. 1 with the patch, which the caller frees; 0 where there is
 * nothing to say, unless 'heartbeat', which says at least that we are there; -EBADMSG where 'known'
 * is no Node, -ENOMEM.
 */
int node_object_patch(const char *known, const NodeLabelsTaints *own, const NodeStatus *status,
                      uint64_t now, bool heartbeat, char **ret_patch);

/* What a Node says: its name, the labels and taints that others gave it; who it is. Strings are the
 * caller's. 0, -EBADMSG for what is no Node, -ENOMEM. */
int node_object_parse(const char *json, NodeLabelsTaints *ret_others, char **ret_uid,
                      char **ret_version);
