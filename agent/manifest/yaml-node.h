/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A node of the tree into which a YAML or JSON file is parsed, with its line and column. The values
 * of scalars are in scalar.h; the parser is in yaml-tree.h. */

#include "common/macros.h"

#include <stdint.h>

typedef enum YamlNodeKind {
        YAML_NODE_NULL,
        YAML_NODE_BOOL,
        YAML_NODE_INT,
        YAML_NODE_FLOAT,
        YAML_NODE_STRING,
        YAML_NODE_SEQUENCE,
        YAML_NODE_MAPPING,
} YamlNodeKind;

typedef struct YamlNode YamlNode;
struct YamlNode {
        YamlNodeKind kind;
        uint32_t line; /* both start at 1 */
        uint32_t column;
        uint32_t weight; /* number of nodes in it, including itself, with aliases expanded */
        uint32_t bytes;  /* size of the texts in it, with aliases expanded */
        uint32_t height; /* nesting levels in it */
        uint32_t n;      /* items of a sequence, pairs of a mapping */
        uint32_t source; /* number of the node's file, if several files are merged into one object
                          */
        union {
                const char *text; /* of a scalar, as written */
                const YamlNode *
                        *items; /* items of a mapping: key, value, key, value…; keys are strings */
        };
};

/* The value of a key; NULL if the key is absent, or if 'mapping' is not a mapping. */
const YamlNode *yaml_node_get(const YamlNode *mapping, const char *key);

static inline const YamlNode *yaml_node_key(const YamlNode *mapping, size_t i) {
        return mapping->items[2 * i];
}

static inline const YamlNode *yaml_node_value(const YamlNode *mapping, size_t i) {
        return mapping->items[2 * i + 1];
}

static inline bool yaml_node_is_scalar(const YamlNode *node) {
        return node->kind < YAML_NODE_SEQUENCE;
}

/* null, "", [] and {}. */
bool yaml_node_is_empty(const YamlNode *node);

/* "the string 'x'", "the boolean yes", "a list": for messages. Returns the buffer. */
enum {
        DESCRIPTION_SIZE = 128
};
const char *yaml_node_describe(const YamlNode *node, char buffer[DESCRIPTION_SIZE]);
