/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of facts.h share; nobody else includes this. */

#include "agent/facts.h"

/* facts-kept.c: taints with the times since when they are there, <state>/taints; and what others
 * have put onto the Node, <state>/node. Recalling gives 0 or -ENOMEM; what cannot be noted is
 * said in the log. */
int facts_recall_taints(const char *state_dir, NodeFacts *ret);
void facts_note_taints(const char *state_dir, const NodeFacts *facts);
int facts_recall_others(const char *state_dir, NodeFacts *ret);
void facts_note_others(const char *state_dir, const NodeFacts *others);
