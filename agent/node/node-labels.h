/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Labels and taints of this node. Local ones are the well-known labels, those of os-release and
 * those of the configuration (registerWithTaints). External ones were set on the Node object at the
 * API server. Conditions such as MemoryPressure add taints. This module does not evict or stop
 * pods. */

#include "agent/manifest/config-files.h"
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

        /* From the command line; see node_labels_set_given(). */
        NodeLabelsTaints given;
        bool has_given_taints;

        NodeLabelsTaints local;
        NodeLabelsTaints external;  /* as last known */
        NodeLabelsTaints effective; /* local ones, then external ones, then those of conditions; if
                                     * keys are equal, the first one is used */
} MergedNodeLabels;

/* To be called before node_labels_load(): "key=value,...", which override labels of the
 * configuration, and "key=value:effect,...", which replace its taints; NULL: none are given. 0, or
 * -EINVAL with a message, -ENOMEM. */
int node_labels_set_given(MergedNodeLabels *node, const char *labels, const char *taints,
                          Error *reterr);

/* To be called when the agent starts. A NoExecute taint without a time was added when an earlier
 * agent first saw it, or now. These times are stored in the state directory, and so are external
 * labels and taints, which are used if the node has joined an API server. 0 or -ENOMEM. */
int node_labels_load(MergedNodeLabels *node, const Config *config, bool is_joined);
void node_labels_done(MergedNodeLabels *node);

/* Sets the node's conditions, each of which adds a taint. This function and the next one return 1
 * if 'effective' has changed; 0; -ENOMEM, in which case nothing has changed. */
int node_labels_set_conditions(MergedNodeLabels *node, unsigned conditions);

/* Sets all external labels and taints. */
int node_labels_set_external(MergedNodeLabels *node, const NodeLabelsTaints *external);

/* Reads the configuration again. 1 if labels or taints have changed; 0; or -errno with a message,
 * in which case nothing has changed: a file that is broken, or missing although it is required,
 * does not remove labels. Other settings take effect at the next start, which is logged. */
int node_labels_reload(MergedNodeLabels *node, const ConfigFiles *files, const Config *running,
                       Error *reterr);
