/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/node.h"

#include "agent/model/pod.h"
#include "agent/model/schema.h"

#include <errno.h>

/* clang-format off */
static const Field node_facts_fields[] = {
        FIELD("name",   STRING,     NodeFacts, name),
        FIELD("labels", STRING_MAP, NodeFacts, labels),
        FIELD("taints", LIST,       NodeFacts, taints, .schema = &taint_schema),
};
/* clang-format on */
const Schema node_facts_schema = SCHEMA(NodeFacts, node_facts_fields);

void node_facts_done(NodeFacts *facts) {
        schema_done(&node_facts_schema, facts);
}

bool node_facts_equal(const NodeFacts *a, const NodeFacts *b) {
        return schema_equal(&node_facts_schema, a, b);
}

static int add_label(NodeFacts *facts, const char *key, const char *value) {
        return string_map_get(&facts->labels, key) ? 0 : string_map_set(&facts->labels, key, value);
}

int node_facts_add_known(NodeFacts *facts, const char *hostname, const char *architecture) {
        const struct {
                const char *key;
                const char *value;
        } labels[] = {
                { "kubernetes.io/hostname", hostname },      { "kubernetes.io/os", "linux" },
                { "kubernetes.io/arch", architecture },      { "beta.kubernetes.io/os", "linux" },
                { "beta.kubernetes.io/arch", architecture },
        };

        for (size_t i = 0; i < N_ELEMENTS(labels); i++) {
                int r = add_label(facts, labels[i].key, labels[i].value);

                if (r < 0)
                        return r;
        }
        return 0;
}

int node_facts_add_labels(NodeFacts *facts, const StringMap *labels) {
        int r = 0;

        for (size_t i = 0; i < labels->n && r >= 0; i++)
                r = add_label(facts, labels->items[i].key, labels->items[i].value);
        return r;
}
