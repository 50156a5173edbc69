/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* JSON as YAML, the way kubectl prints it: keys sorted, strings quoted if a reader of YAML would
 * take them for something else. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* One document without markers. 0 or -errno. */
int yaml_write(json_t *json, FILE *out);

/* The keys of an object in their order, borrowed, NULL-terminated. The caller frees the array;
 * NULL: out of memory. */
const char **yaml_sorted_keys(json_t *object);

/* True if the plain text would be read as a number, boolean, null or time, by YAML 1.1 or 1.2.
 */
bool yaml_needs_quotes(const char *text);
