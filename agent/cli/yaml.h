/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* JSON as YAML, as kubectl prints it: keys sorted, strings quoted if a YAML parser would interpret
 * them as another type. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* One document, without markers. 0 or -errno. */
int yaml_write(json_t *json, FILE *out);

/* The sorted keys of an object, borrowed, NULL-terminated. The caller frees the array; NULL: out of
 * memory. */
const char **yaml_sorted_keys(json_t *object);

/* True if the plain text would be read as a number, boolean, null or time, by YAML 1.1 or 1.2.
 */
bool yaml_needs_quotes(const char *text);
