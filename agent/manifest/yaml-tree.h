/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One tree for YAML and JSON: nodes with line and column, and types as in Kubernetes (YAML 1.1,
 * converted to JSON). Aliases share nodes and merge keys are resolved, within limits that bound
 * memory and time. */

#include "agent/manifest/yaml-node.h"
#include "common/error.h"

enum {
        TREE_NODES_MAX = 400000, /* limit in a file, with aliases expanded; above an API server's
                                  * limits */
        TREE_DEPTH_MAX = 64,
        TREE_ANCHORS_MAX = 256,                /* in a document */
        TREE_TEXT_MAX = 1024 * 1024,           /* bytes of one scalar */
        TREE_ALIAS_TEXT_MAX = 4 * 1024 * 1024, /* bytes of the targets of all aliases */
};

typedef struct Arena Arena;

typedef struct YamlTree {
        Arena *arena; /* owns all nodes and texts */
        const YamlNode **documents;
        size_t n_documents;
} YamlTree;

/* Parses a whole file. 'file' starts every message: "web.yaml:7:11: …". 0, -EINVAL, -ENOMEM. */
int yaml_tree_parse(const char *file, const char *data, size_t length, YamlTree *ret,
                    Error *reterr);
void yaml_tree_done(YamlTree *tree);

/* The same for one of several files: 'source' is its number, which is set in all nodes. */
int yaml_tree_parse_source(const char *file, uint32_t source, const char *data, size_t length,
                           YamlTree *ret, Error *reterr);

/* Applies 'patch' to 'base', which may be NULL, as a JSON merge patch (RFC 7396): mappings are
 * merged, null removes a key, everything else is replaced. The result shares nodes with both; the
 * tree owns new nodes. 0 or -ENOMEM. */
int yaml_tree_merge_patch(YamlTree *tree, const YamlNode *base, const YamlNode *patch,
                          const YamlNode **ret);
