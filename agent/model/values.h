/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The basic types of API objects: lists, string maps, and optional numbers and booleans. */

#include "common/macros.h"

#include <stdint.h>

/* A list is a pointer and a count; all lists have the layout of List. */
#define LIST_OF(type)        \
        struct {             \
                type *items; \
                size_t n;    \
        }

typedef LIST_OF(void) List;

typedef struct OptionalInt {
        bool is_set;
        int64_t value;
} OptionalInt;

/* A bool that distinguishes between absent and false. */
typedef struct OptionalBool {
        bool is_set;
        bool value;
} OptionalBool;

typedef LIST_OF(int64_t) IntList;

/* A number or a text such as "25%"; unset if neither is set. */
typedef struct IntOrString {
        OptionalInt number;
        char *text; /* NULL: the number */
} IntOrString;

typedef struct KeyValue {
        char *key;
        char *value;
} KeyValue;

typedef LIST_OF(KeyValue) StringMap;

/* The value of a key, or NULL. */
const char *string_map_get(const StringMap *map, const char *key);

/* Keeps a sorted map sorted; replaces an existing value. 0 or -ENOMEM. */
int string_map_set(StringMap *map, const char *key, const char *value);

/* Removes a key, if it exists. */
void string_map_remove(StringMap *map, const char *key);

/* Frees the content of the map, and empties it. */
void string_map_done(StringMap *map);

bool string_map_equal(const StringMap *a, const StringMap *b);
