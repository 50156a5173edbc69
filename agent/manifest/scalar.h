/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a scalar is: the rules by which YAML 1.1 gives plain words a type, as the library has them
 * through which Kubernetes reads its files. Surprises and all: yes is a boolean, 0777 is 511, 1e3
 * is a number, 12:30:45 and dates are strings. */

#include "agent/manifest/yaml-tree.h"

/* The type of a plain scalar. */
YamlNodeKind scalar_resolve(const char *text);

/* The type under a tag: "tag:yaml.org,2002:int". 0, or -EINVAL where the tag is not one of plain
 * data or the text does not agree. */
int scalar_resolve_tagged(const char *text, const char *tag, YamlNodeKind *ret);
