/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Paths for the agent, created from a client's path: everything except letters, digits and "-._~"
 * is escaped. Pure. */

#include "common/url-escape.h"

#include <stddef.h>

/* Writes "/name" for each name. */
void url_write_components(FILE *out, const char *const *names, size_t n);

/* Writes "name=value&" for a query; nothing without a value. */
void url_write_argument(FILE *out, const char *name, const char *value);

/* Splits a path "a/b/c" in place into at most 'max' non-empty parts. Returns their number; -EINVAL
 * if there are more, or one is empty. */
int split_url_path(char *path, const char **ret_parts, int max);
