/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Node object as this node serves it itself (/node on the local socket): labels, taints and
 * conditions together with the status that the API server would have. */

#include "agent/apiserver/collected-node-status.h"
#include "agent/model/node-status.h"

typedef struct NodeObjectSpec {
        const NodeStatusInputs *inputs;
        const NodeLabelsTaints *labels_taints;
        const NodeApiServerConnection *connection;
        const char *settings_without_effect; /* "a, b"; NULL: none */
        const char *secrets_at_rest;         /* see secret_storage_describe() */
        const char *state_dir;               /* its age is the Node's */
        uint64_t ready_since;                /* realtime; 0: not yet */
} NodeObjectSpec;

/* A v1.Node, compact. The caller frees it; NULL: out of memory, or the machine cannot be read. */
char *node_object_to_json(const NodeObjectSpec *spec);
