/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Looks into JSON without parsing it: what stands at a key of an object, as text. For the few words
 * of an object that somebody else will parse in full. Of a key that stands twice it is the first.
 * Text that is no JSON has no members. */

#include <stdbool.h>
#include <stddef.h>

typedef struct JsonView {
        const char *text; /* NULL: there is none */
        size_t length;
} JsonView;

/* The value of 'key' in the object; none where 'object' is no object. */
JsonView json_view_member(JsonView object, const char *key);

/* The item of a list, from 0; none where there is none, or 'list' is no list. */
JsonView json_view_item(JsonView list, size_t index);

/* A string's characters as they are written, between its quotes; none where it is no string or has
 * escapes in it. */
JsonView json_view_string(JsonView value);

/* A string of that kind, in memory that the caller frees; NULL where there is none, or it is "". */
char *json_view_dup(JsonView value);

/* A string for a person, shortened, fit to be shown; freed by the caller, NULL likewise. */
char *json_view_message(JsonView value);

bool json_view_equals(JsonView value, const char *string);

/* A number that is whole and not negative, or -1. */
long json_view_number(JsonView value);
