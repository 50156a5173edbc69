/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What pods ask of this node: its labels and taints. It says of itself the well-known ones, what
 * os-release says and what the configuration adds; where it has joined an API server, others have
 * put more onto its Node; and what it is short of makes taints. */

#include "agent/model/config.h"
#include "agent/model/node.h"
#include "common/clock.h"
#include "common/error.h"

typedef struct Facts {
        /* Borrowed; set by the owner before facts_load(). */
        const char *node_name;
        const char *hostname;
        const char *state_dir;
        const SteadyClock *clock;

        NodeFacts own;    /* what the node says of itself */
        NodeFacts others; /* what others have put onto its Node, as it was known last */
        NodeFacts all;    /* own, then what others add, then taints of conditions. A key that the
                             node has of itself is as it says. */
} Facts;

/* What the node is when the agent starts. A taint of NoExecute whose time nobody says is there
 * since an earlier agent saw it first, or since now; that is kept below the state directory, as is
 * what others say, which counts where the node has joined a server. 0, or -ENOMEM. */
int facts_load(Facts *facts, const Config *config, bool is_joined);
void facts_done(Facts *facts);

/* The node has these conditions, each with its taint. This and the next give 1 where 'all' is
 * another now; 0; -ENOMEM, and then it is as it was. */
int facts_set_conditions(Facts *facts, unsigned conditions);

/* Others have put these labels and taints onto the Node, and no more. */
int facts_set_others(Facts *facts, const NodeFacts *others);

/* Reads the configuration again. 1 where anything is another now; 0; or -errno with the sentence,
 * and then all is as it was: a file that is broken or gone is no order to do without labels. That
 * other settings than these wait for the next start is said in the log. */
int facts_reload(Facts *facts, const char *config_path, const Config *running, Error *reterr);
