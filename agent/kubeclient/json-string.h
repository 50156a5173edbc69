/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Helpers for strings of JSON objects. */

#include <jansson.h>

/* A copy of the string; NULL if it is absent or not a string, which the caller handles. 0 or
 * -ENOMEM. */
int json_copy_string(const json_t *object, const char *key, char **ret);
