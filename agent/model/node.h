/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is asked of a node before a pod may be on it: its name, its labels, its taints. Plain data,
 * whether it comes from this machine, its configuration or a command line. */

#include "agent/model/eviction.h"
#include "agent/model/placement.h"
#include "agent/model/schema.h"

typedef struct NodeLabelsTaints {
        char *name;
        StringMap labels; /* sorted */
        TaintList taints;
        unsigned conditions; /* the set of those that have brought a taint of theirs */
} NodeLabelsTaints;

extern const Schema node_labels_taints_schema;

void node_labels_taints_done(NodeLabelsTaints *node);
bool node_labels_taints_equal(const NodeLabelsTaints *a, const NodeLabelsTaints *b);

/* The labels that every node has, where the facts have no others of the key:
 * kubernetes.io/hostname, os and arch, and the last two under their beta names. 'architecture' is
 * in Go's words. 0 or -ENOMEM. */
int node_labels_taints_add_well_known(NodeLabelsTaints *node, const char *hostname,
                                      const char *architecture);

/* Labels, where the facts have none of the key yet. 0 or -ENOMEM. */
int node_labels_taints_add_labels(NodeLabelsTaints *node, const StringMap *labels);
