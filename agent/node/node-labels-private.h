/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Checkpoints of node labels and taints, in node-labels-checkpoint.c. */

#include "agent/node/node-labels.h"

/* Taints with the times when they were added, <state>/taints; external labels and taints,
 * <state>/node. Loading returns 0 or -ENOMEM; failed writes are logged. */
int node_labels_load_taints(const char *state_dir, NodeLabelsTaints *ret);
void node_labels_save_taints(const char *state_dir, const NodeLabelsTaints *node);
int node_labels_load_external(const char *state_dir, NodeLabelsTaints *ret);
void node_labels_save_external(const char *state_dir, const NodeLabelsTaints *external);
