/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Strings of JSON objects; for the files of this room. */

#include <jansson.h>

/* A copy of the string, NULL where there is none: what is no string is as good as absent, and
 * whether it may be is for who needs it. 0 or -ENOMEM. */
int json_copy_string(const json_t *object, const char *key, char **ret);
