/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a scalar is: the rules by which YAML 1.1 gives plain words a type, as the library has them
 * through which Kubernetes reads its files. Surprises and all: yes is a boolean, 0777 is 511, 1e3
 * is a number, 12:30:45 and dates are strings. */

#include "agent/manifest/yaml-node.h"

/* The type of a plain scalar. */
YamlNodeKind scalar_resolve(const char *text);

/* The type under a tag: "tag:yaml.org,2002:int". 0, or -EINVAL where the tag is not one of plain
 * data or the text does not agree. */
int scalar_resolve_tagged(const char *text, const char *tag, YamlNodeKind *ret);

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
