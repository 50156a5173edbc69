/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Paths for the agent, created from the path of a client: everything except letters, digits and
 * "-._~" is escaped. Pure. */

#include "common/url-escape.h"

#include <stddef.h>

/* Writes "/name" for each of the names. */
void url_write_components(FILE *out, const char *const *names, size_t n);

/* Writes "name=value&" of a query; nothing without a value. */
void url_write_argument(FILE *out, const char *name, const char *value);

/* Splits a path "a/b/c" in place into at most 'max' parts that are not empty. Returns their number;
 * -EINVAL if there are more, or an empty one. */
int split_url_path(char *path, const char **ret_parts, int max);
