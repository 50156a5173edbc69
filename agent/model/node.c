/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/node.h"

#include "agent/model/pod.h"
#include "agent/model/schema.h"

#include <errno.h>

/* clang-format off */
static const Field node_labels_taints_fields[] = {
        FIELD("name",   STRING,     NodeLabelsTaints, name),
        FIELD("labels", STRING_MAP, NodeLabelsTaints, labels),
        FIELD("taints", LIST,       NodeLabelsTaints, taints, .schema = &taint_schema),
};
/* clang-format on */
const Schema node_labels_taints_schema = SCHEMA(NodeLabelsTaints, node_labels_taints_fields);

void node_labels_taints_done(NodeLabelsTaints *node) {
        schema_done(&node_labels_taints_schema, node);
}

bool node_labels_taints_equal(const NodeLabelsTaints *a, const NodeLabelsTaints *b) {
        return schema_equal(&node_labels_taints_schema, a, b);
}

static int add_missing_node_label(NodeLabelsTaints *node, const char *key, const char *value) {
        return string_map_get(&node->labels, key) ? 0 : string_map_set(&node->labels, key, value);
}

int node_labels_taints_add_well_known(NodeLabelsTaints *node, const char *hostname,
                                      const char *architecture) {
        const struct {
                const char *key;
                const char *value;
        } labels[] = {
                { "kubernetes.io/hostname", hostname },      { "kubernetes.io/os", "linux" },
                { "kubernetes.io/arch", architecture },      { "beta.kubernetes.io/os", "linux" },
                { "beta.kubernetes.io/arch", architecture },
        };

        for (size_t i = 0; i < N_ELEMENTS(labels); i++) {
                int r = add_missing_node_label(node, labels[i].key, labels[i].value);

                if (r < 0)
                        return r;
        }
        return 0;
}

int node_labels_taints_add_labels(NodeLabelsTaints *node, const StringMap *labels) {
        int r = 0;

        for (size_t i = 0; i < labels->n && r >= 0; i++)
                r = add_missing_node_label(node, labels->items[i].key, labels->items[i].value);
        return r;
}
