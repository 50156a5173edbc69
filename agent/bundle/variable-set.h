/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Environment variables in the order in which their names were first set. The pod determines the
 * names and their number, so they are untrusted. */

#include "common/macros.h"

enum {
        /* The maximum of execve(2) with the usual stack limit, 8 MiB: strings and pointers. */
        EXEC_BYTES_MAX = 2 * MIB
};

typedef struct VariableSet {
        char **strv; /* "NAME=value" for execve(2); NULL: none */
        size_t n;
        size_t bytes;  /* counted like execve(2) does */
        void *by_name; /* for tsearch(3), which no choice of names can slow down, unlike a hash
                        * table */
} VariableSet;

#define VARIABLE_SET_NULL ((VariableSet){ 0 })

void variable_set_done(VariableSet *set);

/* The value, or NULL. The name need not be NUL-terminated. */
const char *variable_set_find(const VariableSet *set, const char *name, size_t length);

/* Replaces the value of an existing variable in place, or appends a variable. 0, -ENOMEM, or -E2BIG
 * if the total would exceed EXEC_BYTES_MAX, in which case the set is unchanged. */
int variable_set_put(VariableSet *set, const char *name, const char *value);

/* The same for each "NAME=value" in a list, until the first error; NULL: an empty list. Entries
 * without a '=' are skipped. */
int variable_set_put_entries(VariableSet *set, char *const *entries);

/* Appends a variable if the name is not set. Returns the same as variable_set_put(). */
int variable_set_put_default(VariableSet *set, const char *name, const char *value);

/* The bytes that execve(2) counts for a string: its bytes, the NUL and its pointer. */
size_t exec_string_bytes(const char *string);
