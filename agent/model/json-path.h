/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Members of objects of the API as jansson's tree. Pure. */

#include <jansson.h>

/* A nested member: json_at(pod, "status", "phase"). NULL if one is missing. */
#define json_at(object, ...) json_walk(object, (const char *const[]){ __VA_ARGS__, NULL })
json_t *json_walk(const json_t *object, const char *const *keys);

/* The string there, or NULL. */
#define json_text(object, ...) json_string_value(json_at(object, __VA_ARGS__))

/* The condition of that type in the status, borrowed; NULL if it is absent. */
const json_t *find_status_condition(const json_t *object, const char *type);
