/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Prepares a file for parsing: checks that the bytes are text, and converts the JSON syntax that
 * the YAML parser does not accept. */

#include "common/error.h"

/* Refuses NUL, invalid UTF-8, UTF-16, and too many %TAG directives, with the place: "web.yaml:3:7:
 * …". 0 or -EINVAL. */
int check_manifest_text(const char *file, const char *data, size_t length, Error *reterr);

/* Line and column, from 1, of a byte offset. Columns count characters. */
void find_text_position(const char *data, size_t offset, size_t *ret_line, size_t *ret_column);

/* JSON is YAML except for surrogate pairs ("\ud83d\ude00") and tabs between tokens. Returns a copy
 * in which both are converted to YAML (*ret is NULL if nothing had to be converted); the caller
 * frees it. 0 or -ENOMEM. */
int convert_json_text_to_yaml(const char *data, size_t length, char **ret, size_t *ret_length);
