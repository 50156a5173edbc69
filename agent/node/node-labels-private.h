/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of facts.h share; nobody else includes this. */

#include "agent/node/node-labels.h"

/* facts-kept.c: taints with the times since when they are there, <state>/taints; and what others
 * have put onto the Node, <state>/node. Recalling gives 0 or -ENOMEM; what cannot be noted is
 * said in the log. */
int node_labels_load_taints(const char *state_dir, NodeLabelsTaints *ret);
void node_labels_save_taints(const char *state_dir, const NodeLabelsTaints *node);
int node_labels_load_external(const char *state_dir, NodeLabelsTaints *ret);
void node_labels_save_external(const char *state_dir, const NodeLabelsTaints *external);
