/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Environment variables in the order in which their names were first set. A pod chooses their names
 * and their number. */

#include "common/macros.h"

enum {
        /* What execve(2) takes with the usual limit of the stack, 8 MiB: strings and pointers. */
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

/* Replaces the value of the same name at its place, or appends a variable. 0, -ENOMEM, or -E2BIG
 * where all would take more than EXEC_BYTES_MAX; the set is then as it was. */
int variable_set_put(VariableSet *set, const char *name, const char *value);

/* Likewise, for each "NAME=value" until the first error; NULL: none. What lacks a '=' is passed
 * over. */
int variable_set_put_entries(VariableSet *set, char *const *entries);

/* Appends a variable where the name is not set. As variable_set_put(). */
int variable_set_put_default(VariableSet *set, const char *name, const char *value);

/* What execve(2) counts for a string: its bytes, its end and its pointer. */
size_t exec_string_bytes(const char *string);
