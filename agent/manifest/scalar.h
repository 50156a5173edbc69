/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The types of plain scalars, by the rules of YAML 1.1 as implemented by the library with which
 * Kubernetes reads its files: yes is a boolean, 0777 is 511, 1e3 is a number, 12:30:45 and dates
 * are strings. */

#include "agent/manifest/yaml-node.h"

/* The type of a plain scalar. */
YamlNodeKind scalar_resolve(const char *text);

/* The type of a scalar with a tag such as "tag:yaml.org,2002:int". 0, or -EINVAL if the tag does
 * not denote plain data or does not fit the text. */
int scalar_resolve_tagged(const char *text, const char *tag, YamlNodeKind *ret);

/* Value of a YAML_NODE_BOOL. */
bool yaml_node_bool(const YamlNode *node);

/* The value of a YAML_NODE_INT, or of a YAML_NODE_FLOAT without a fraction; false if it does not
 * fit in 64 bits. */
bool yaml_node_int(const YamlNode *node, int64_t *ret);

enum {
        NUMBER_SIZE = 64
};

/* A number as JSON ("0x10" becomes "16", "1e3" becomes "1000"); false if it cannot be expressed in
 * JSON. */
bool yaml_node_number(const YamlNode *node, char buffer[NUMBER_SIZE]);

/* A number as a key, which is a string in JSON, in the form of sigs.k8s.io/yaml: 1.50 becomes
 * "1.5", and more than 24 bits of precision are rounded. */
bool yaml_node_number_as_key(const YamlNode *node, char buffer[NUMBER_SIZE]);
