/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The properties of a node that decide which pods may run on it: name, labels, taints. Plain data,
 * from this machine, its configuration or a command line. */

#include "agent/model/eviction.h"
#include "agent/model/placement.h"
#include "agent/model/schema.h"

typedef struct NodeLabelsTaints {
        char *name;
        StringMap labels; /* sorted */
        TaintList taints;
        unsigned conditions; /* the set of node conditions whose taint is present */
} NodeLabelsTaints;

extern const Schema node_labels_taints_schema;

void node_labels_taints_done(NodeLabelsTaints *node);
bool node_labels_taints_equal(const NodeLabelsTaints *a, const NodeLabelsTaints *b);

/* Adds the labels that every node has, unless they are already set: kubernetes.io/hostname, os and
 * arch, and the last two also under their beta names. 'architecture' is Go's name. 0 or -ENOMEM. */
int node_labels_taints_add_well_known(NodeLabelsTaints *node, const char *hostname,
                                      const char *architecture);

/* Adds the labels whose keys are not set yet. 0 or -ENOMEM. */
int node_labels_taints_add_labels(NodeLabelsTaints *node, const StringMap *labels);
