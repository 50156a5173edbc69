/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Environment variables in the order in which their names were first set. A pod chooses their names
 * and their number. */

#include "common/macros.h"

enum {
        /* The maximum that execve(2) accepts with the usual stack limit, 8 MiB: strings and
         * pointers. */
        EXEC_BYTES_MAX = 2 * MIB
};

typedef struct VariableSet {
        char **strv; /* "NAME=value" for execve(2); NULL: none */
        size_t n;
        size_t bytes;  /* as execve(2) counts them */
        void *by_name; /* of tsearch(3): unlike with a hash, no choice of names makes it slow */
} VariableSet;

#define VARIABLE_SET_NULL ((VariableSet){ 0 })

void variable_set_done(VariableSet *set);

/* The value, or NULL. The name need not end with a NUL. */
const char *variable_set_find(const VariableSet *set, const char *name, size_t length);

/* Replaces the value of the same name at its place, or appends a variable. 0, -ENOMEM, or -E2BIG if
 * all would take more than EXEC_BYTES_MAX; the set is then unchanged. */
int variable_set_put(VariableSet *set, const char *name, const char *value);

/* Likewise, for each "NAME=value" until the first error; NULL: none. Entries without a '=' are
 * skipped. */
int variable_set_put_entries(VariableSet *set, char *const *entries);

/* Appends a variable if the name is not set. As variable_set_put(). */
int variable_set_put_default(VariableSet *set, const char *name, const char *value);

/* The bytes that execve(2) counts for a string: its bytes, its end and its pointer. */
size_t exec_string_bytes(const char *string);
