/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whose the labels and taints of a Node are. What this node says of itself is kept there as it says
 * it, and taken away when it says so no more; everything else is others', and is never touched. So
 * that both can be told apart by any agent, annotations of the Node list what it was given by its
 * node: a label that stands there with the value of the list is the node's own. Pure. */

#include "agent/model/node.h"

#include <jansson.h>

/* Whether a node may give itself the label: an admission refuses the whole Node for one that only
 * the cluster's administrators give. */
bool node_label_is_self_assignable(const char *key);

/* The metadata that registers, beside the name: labels and the annotations; and the taints, NULL
 * where there are none. */
json_t *node_local_labels_to_json(const NodeLabelsTaints *own);
json_t *node_local_annotations_to_json(const NodeLabelsTaints *own);
json_t *node_local_taints_to_json(const NodeLabelsTaints *own);

/* The patch of its metadata that brings the Node of the server to what the node says of itself;
 * an empty object where it is so. Taints are an administrator's to remove: NodeRestriction lets no
 * node do it. */
json_t *node_local_metadata_patch(const json_t *node, const NodeLabelsTaints *own);

/* What others have put onto the Node: labels and taints, but not those by which a cluster says of a
 * node what it tells itself as conditions. 0 or -ENOMEM. */
int node_external_labels_parse(const json_t *node, NodeLabelsTaints *ret);
