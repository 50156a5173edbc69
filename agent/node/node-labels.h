/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What pods ask of this node: its labels and taints. It says of itself the well-known ones, what
 * os-release says and what the configuration adds; where it has joined an API server, others have
 * put more onto its Node; and what it is short of makes taints. */

#include "agent/model/config.h"
#include "agent/model/node.h"
#include "common/clock.h"
#include "common/error.h"

typedef struct MergedNodeLabels {
        /* Borrowed; set by the owner before node_labels_load(). */
        const char *node_name;
        const char *hostname;
        const char *state_dir;
        const SteadyClock *clock;

        NodeLabelsTaints local;     /* what the node says of itself */
        NodeLabelsTaints external;  /* what others have put onto its Node, as it was known last */
        NodeLabelsTaints effective; /* own, then what others add, then taints of conditions. A key
                          that the node has of itself is as it says. */
} MergedNodeLabels;

/* What the node is when the agent starts. A taint of NoExecute whose time nobody says is there
 * since an earlier agent saw it first, or since now; that is kept below the state directory, as is
 * what others say, which counts where the node has joined a server. 0, or -ENOMEM. */
int node_labels_load(MergedNodeLabels *node, const Config *config, bool is_joined);
void node_labels_done(MergedNodeLabels *node);

/* The node has these conditions, each with its taint. This and the next give 1 where 'all' is
 * another now; 0; -ENOMEM, and then it is as it was. */
int node_labels_set_conditions(MergedNodeLabels *node, unsigned conditions);

/* Others have put these labels and taints onto the Node, and no more. */
int node_labels_set_external(MergedNodeLabels *node, const NodeLabelsTaints *external);

/* Reads the configuration again. 1 where anything is another now; 0; or -errno with the sentence,
 * and then all is as it was: a file that is broken or gone is no order to do without labels. That
 * other settings than these wait for the next start is said in the log. */
int node_labels_reload(MergedNodeLabels *node, const char *config_path, const Config *running,
                       Error *reterr);
