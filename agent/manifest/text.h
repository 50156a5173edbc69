/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bytes before they are parsed: whether they are text at all, and what of JSON the YAML parser
 * would not take. */

#include "common/error.h"

/* Refuses NUL, invalid UTF-8 and UTF-16 with the place, "web.yaml:3:7: …", and %TAG directives
 * without end. 0 or -EINVAL. */
int check_manifest_text(const char *file, const char *data, size_t length, Error *reterr);

/* Line and column, from 1, of a byte. Columns count characters. */
void find_text_position(const char *data, size_t offset, size_t *ret_line, size_t *ret_column);

/* JSON is YAML but for two things: surrogate pairs ("\ud83d\ude00") and tabs between tokens. Gives
 * a copy in which both are written as YAML has them (*ret is NULL where nothing is to be done), to
 * be freed by the caller. 0 or -ENOMEM. */
int convert_json_text_to_yaml(const char *data, size_t length, char **ret, size_t *ret_length);
