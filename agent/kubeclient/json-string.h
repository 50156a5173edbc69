/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Strings of JSON objects, for the files of this module. */

#include <jansson.h>

/* A copy of the string; NULL if it is absent or not a string, which the caller judges. 0 or
 * -ENOMEM. */
int json_copy_string(const json_t *object, const char *key, char **ret);
