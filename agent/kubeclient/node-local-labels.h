/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Separates the local labels and taints of a Node from external ones. Local labels come from the
 * node's configuration; external ones, set by other writers, are never changed. Annotations of the
 * Node list what the node has set on itself, so that every agent can distinguish them: a label is
 * local if it has the listed value. Pure. */

#include "agent/model/node.h"

#include <jansson.h>

/* Whether NodeRestriction permits a node to set the label on itself; if not, it refuses the whole
 * Node. */
bool node_label_is_self_assignable(const char *key);

/* The metadata for registration, without the name: labels and annotations; and the taints, NULL if
 * there are none. */
json_t *node_local_labels_to_json(const NodeLabelsTaints *own);
json_t *node_local_annotations_to_json(const NodeLabelsTaints *own);
json_t *node_local_taints_to_json(const NodeLabelsTaints *own);

/* The patch of the metadata that makes the server's Node equal to the local configuration; an empty
 * object if nothing differs. Only an administrator can remove taints: NodeRestriction does not
 * permit a node to do so. */
json_t *node_local_metadata_patch(const json_t *node, const NodeLabelsTaints *own);

/* The node's own labels that other writers had changed ('found' is their value) or removed (NULL)
 * in the server's Node 'before', and that are restored in 'after'. */
void node_local_labels_find_restored(const json_t *before, const json_t *after,
                                     void (*on_restored)(const char *key, const char *found,
                                                         const char *value, void *userdata),
                                     void *userdata);

/* The external labels and taints, without the taints that mirror the node's own conditions. 0 or
 * -ENOMEM. */
int node_external_labels_parse(const json_t *node, NodeLabelsTaints *ret);
