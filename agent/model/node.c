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

bool node_taint_is_of_condition(const NodeFacts *facts, const Taint *taint) {
        for (NodeCondition c = 0; c < N_NODE_CONDITIONS; c++)
                if ((facts->conditions & NODE_CONDITION_BIT(c)) &&
                    taint->effect == TAINT_NO_SCHEDULE &&
                    streq(taint->key, node_conditions[c].taint))
                        return true;
        return false;
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
                int r = 0;

                if (!string_map_get(&facts->labels, labels[i].key))
                        r = string_map_set(&facts->labels, labels[i].key, labels[i].value);
                if (r < 0)
                        return r;
        }
        return 0;
}
