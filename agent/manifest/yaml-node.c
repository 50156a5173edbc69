/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/yaml-node.h"

#include "agent/model/names.h"

#include <stdio.h>

const YamlNode *yaml_node_get(const YamlNode *mapping, const char *key) {
        if (mapping->kind != YAML_NODE_MAPPING)
                return NULL;
        for (size_t i = 0; i < mapping->n; i++)
                if (streq(yaml_node_key(mapping, i)->text, key))
                        return yaml_node_value(mapping, i);
        return NULL;
}

bool yaml_node_is_empty(const YamlNode *node) {
        if (node->kind == YAML_NODE_NULL)
                return true;
        if (node->kind == YAML_NODE_STRING)
                return node->text[0] == '\0';
        return !yaml_node_is_scalar(node) && node->n == 0;
}

const char *yaml_node_describe(const YamlNode *node, char buffer[DESCRIPTION_SIZE]) {
        static const char *const forms[] = {
                [YAML_NODE_NULL] = "nothing",         [YAML_NODE_BOOL] = "the boolean %s",
                [YAML_NODE_INT] = "the number %s",    [YAML_NODE_FLOAT] = "the number %s",
                [YAML_NODE_STRING] = "the string %s", [YAML_NODE_SEQUENCE] = "a list",
                [YAML_NODE_MAPPING] = "a mapping",
        };
        char text[EXCERPT_SIZE];
        const char *form = forms[node->kind], *hole = strstr(form, "%s");
        const char *quote = node->kind == YAML_NODE_STRING ? "'" : "";
        int n_form = hole ? (int) (hole - form) : (int) strlen(form);

        (void) snprintf(buffer, DESCRIPTION_SIZE, "%.*s%s%s%s", n_form, form, quote,
                        hole ? excerpt(text, node->text) : "", quote);
        return buffer;
}
