/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads single members of JSON without parsing all of it, for objects that are parsed elsewhere. If
 * a key is duplicated, the first one is used. In text that is not JSON, members count as absent. */

#include <stdbool.h>
#include <stddef.h>

typedef struct JsonView {
        const char *text; /* NULL: absent */
        size_t length;
} JsonView;

/* The value of 'key' in the object; absent if 'object' is not an object. */
JsonView json_view_member(JsonView object, const char *key);

/* The item of a list, from 0; absent if there is none, or if 'list' is not a list. */
JsonView json_view_item(JsonView list, size_t index);

/* The characters of a string without escapes; absent if it is not a string, or has escapes. */
JsonView json_view_string(JsonView value);

/* A copy of such a string, which the caller frees; NULL if it is absent or "". */
char *json_view_dup(JsonView value);

/* A string for messages: the same, but shortened and printable; the caller frees it, and it may be
 * NULL. */
char *json_view_message(JsonView value);

bool json_view_equals(JsonView value, const char *string);

/* A non-negative integer, or -1. */
long json_view_number(JsonView value);
