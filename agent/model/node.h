/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is asked of a node before a pod may be on it: its name, its labels, its taints. Plain data,
 * whether it comes from this machine, its configuration or a command line. */

#include "agent/model/eviction.h"
#include "agent/model/placement.h"
#include "agent/model/schema.h"

typedef struct NodeFacts {
        char *name;
        StringMap labels; /* sorted */
        TaintList taints;
        unsigned conditions; /* the set of those that have brought a taint of theirs */
} NodeFacts;

extern const Schema node_facts_schema;

void node_facts_done(NodeFacts *facts);
bool node_facts_equal(const NodeFacts *a, const NodeFacts *b);

/* Whether the taint is there because the node has a condition, and goes with it. */
bool node_taint_is_of_condition(const NodeFacts *facts, const Taint *taint);

/* The labels that every node has, where the facts have no others of the key:
 * kubernetes.io/hostname, os and arch, and the last two under their beta names. 'architecture' is
 * in Go's words. 0 or -ENOMEM. */
int node_facts_add_known(NodeFacts *facts, const char *hostname, const char *architecture);
