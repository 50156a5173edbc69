/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Ensures that JSON is complete or absent. Code that builds many small values does not check each
 * of them, and json_dumps() does not check all of its own allocations: if its buffer cannot grow,
 * it omits the name of a member. Therefore jansson's failed allocations are counted. Not
 * thread-safe. */

#include "common/macros.h"

#include <jansson.h>

/* A reference that the scope owns: cleanup_json json_t *value = NULL; */
#define cleanup_json cleanup_with(json_decrefp)

/* A nested member: json_at(pod, "status", "phase"). Borrowed; NULL if one is missing. */
#define json_at(object, ...) json_walk(object, (const char *const[]){ __VA_ARGS__, NULL })
json_t *json_walk(const json_t *object, const char *const *keys);

/* The string at that place; NULL if it is missing or not a string. */
#define json_text(object, ...) json_string_value(json_at(object, __VA_ARGS__))

/* The number of failed allocations of jansson. Code that creates other texts while it builds an
 * object compares this before and after: if it differs, something may be missing, and the result
 * must be -ENOMEM. */
unsigned json_failed_allocations(void);

/* Like json_loadb(), which does not distinguish invalid text from exhausted memory. 0 and the
 * value, which the caller frees; -EBADMSG with the place in 'ret_problem', which may be NULL;
 * -ENOMEM. */
int json_parse_text(const char *text, size_t length, size_t flags, json_t **ret,
                    json_error_t *ret_problem);

/* Like json_dumps(): the caller frees the text. The result is also NULL if an allocation of jansson
 * has failed since the last text, because a part of this text may be missing. */
char *json_to_text(const json_t *json, size_t flags);

/* Copies a member that is a string; the caller frees the copy. 0, and '*ret' is unchanged if there
 * is none or it is not a string; -ENOMEM. */
int json_copy_text(const json_t *object, const char *key, char **ret);

/* Appends copies of the strings in an array to a list for strv_free(); NULL counts as an empty
 * array. 0; -EBADMSG if an item is not a string, -ENOMEM: the items before it have been
 * appended. */
int json_append_texts(const json_t *array, char ***strv);
