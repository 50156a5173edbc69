/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One tree for YAML and JSON: nodes that remember line and column, with the types that Kubernetes'
 * own reading of YAML (1.1, by way of JSON) gives them. Aliases share nodes and merge keys are
 * resolved, within budgets that no file can exceed by cleverness. */

#include "common/error.h"

#include <stdint.h>

enum {
        TREE_NODES_MAX = 100000, /* in a file, aliases expanded */
        TREE_DEPTH_MAX = 64,
        TREE_ANCHORS_MAX = 256,      /* in a document */
        TREE_TEXT_MAX = 1024 * 1024, /* bytes of a scalar */
};

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
        uint32_t line; /* both from 1 */
        uint32_t column;
        uint32_t weight; /* nodes in it, itself included, aliases expanded */
        uint32_t height; /* levels in it */
        uint32_t n;      /* items of a sequence, pairs of a mapping */
        union {
                const char *text; /* of a scalar, as it was written */
                const YamlNode *
                        *items; /* of a mapping: key, value, key, value…; keys are strings */
        };
};

typedef struct Arena Arena;

typedef struct YamlTree {
        Arena *arena; /* owns all nodes and texts */
        const YamlNode **documents;
        size_t n_documents;
} YamlTree;

/* Parses a whole file. 'file' begins every sentence: "web.yaml:7:11: …". 0, -EINVAL, -ENOMEM. */
int yaml_tree_parse(const char *file, const char *data, size_t length, YamlTree *ret,
                    Error *reterr);
void yaml_tree_done(YamlTree *tree);

/* The value of a key, or NULL; also where 'mapping' is none. */
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

/* Value of a YAML_NODE_BOOL. */
bool yaml_node_bool(const YamlNode *node);

/* Value of a YAML_NODE_INT, or of a YAML_NODE_FLOAT that is whole; false where there is none in 64
 * bits. */
bool yaml_node_int(const YamlNode *node, int64_t *ret);

enum {
        NUMBER_SIZE = 64
};

/* A number as JSON has it ("0x10" is "16", "1e3" is "1000"); false for what JSON cannot say. */
bool yaml_node_number(const YamlNode *node, char buffer[NUMBER_SIZE]);

/* A number that is a key, which JSON wants to be a string, as sigs.k8s.io/yaml writes it: 1.50 is
 * "1.5", and what has more digits than 24 bits hold is rounded. */
bool yaml_node_number_as_key(const YamlNode *node, char buffer[NUMBER_SIZE]);

/* "the string 'x'", "the boolean yes", "a list": for sentences. Returns the buffer. */
enum {
        DESCRIPTION_SIZE = 128
};
const char *yaml_node_describe(const YamlNode *node, char buffer[DESCRIPTION_SIZE]);
