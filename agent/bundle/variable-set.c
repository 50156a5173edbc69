/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/variable-set.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "common/text.h"

#include <search.h>

typedef struct VariableName {
        const char *text; /* in its entry of the array */
        size_t length;
        size_t index;
} VariableName;

static int compare_variable_names(const void *a, const void *b) {
        const VariableName *x = a, *y = b;
        int order = memcmp(x->text, y->text, MIN(x->length, y->length));

        return order != 0 ? order : (x->length > y->length) - (x->length < y->length);
}

static VariableName *find_variable_name(const VariableSet *set, const char *name, size_t length) {
        const VariableName key = { .text = name, .length = length };
        VariableName *const *node = tfind(&key, &set->by_name, compare_variable_names);

        return node ? *node : NULL;
}

const char *variable_set_find(const VariableSet *set, const char *name, size_t length) {
        const VariableName *found = find_variable_name(set, name, length);

        return found ? found->text + length + 1 : NULL;
}

size_t exec_string_bytes(const char *string) {
        return strlen(string) + 1 + sizeof(char *);
}

/* Takes the entry. */
static int append_variable(VariableSet *set, char **entry, size_t length) {
        cleanup_free VariableName *name = malloc(sizeof(*name));

        if (!name || !ARRAY_RESERVE(set->strv, set->n, 2))
                return -ENOMEM;
        *name = (VariableName){ *entry, length, set->n };
        set->strv[set->n] = NULL;
        if (!tsearch(name, &set->by_name, compare_variable_names))
                return -ENOMEM;
        TAKE_PTR(name);
        set->strv[set->n++] = TAKE_PTR(*entry);
        set->strv[set->n] = NULL;
        return 0;
}

/* Takes the entry, whose name is the same. */
static void replace_variable(VariableSet *set, VariableName *name, char **entry) {
        free(set->strv[name->index]);
        set->strv[name->index] = TAKE_PTR(*entry);
        name->text = set->strv[name->index];
}

/* Takes the entry. */
static int put_variable(VariableSet *set, char **entry, size_t length) {
        VariableName *name = find_variable_name(set, *entry, length);
        size_t old = name ? exec_string_bytes(set->strv[name->index]) : 0;
        size_t bytes = set->bytes - old + exec_string_bytes(*entry);
        int r = 0;

        if (bytes > EXEC_BYTES_MAX)
                return -E2BIG;
        if (name)
                replace_variable(set, name, entry);
        else
                r = append_variable(set, entry, length);
        if (r >= 0)
                set->bytes = bytes;
        return r;
}

int variable_set_put(VariableSet *set, const char *name, const char *value) {
        cleanup_free char *entry = text_format("%s=%s", name, value);

        if (!entry)
                return -ENOMEM;
        return put_variable(set, &entry, strlen(name));
}

static int put_entry(VariableSet *set, const char *entry) {
        const char *equals = strchr(entry, '=');
        cleanup_free char *copy = equals ? strdup(entry) : NULL;

        if (!equals)
                return 0;
        return copy ? put_variable(set, &copy, (size_t) (equals - entry)) : -ENOMEM;
}

int variable_set_put_entries(VariableSet *set, char *const *entries) {
        int r = 0;

        for (size_t i = 0; r >= 0 && entries && entries[i]; i++)
                r = put_entry(set, entries[i]);
        return r;
}

int variable_set_put_default(VariableSet *set, const char *name, const char *value) {
        return variable_set_find(set, name, strlen(name)) ? 0 : variable_set_put(set, name, value);
}

void variable_set_done(VariableSet *set) {
        tdestroy(set->by_name, free);
        strv_free(set->strv);
        *set = VARIABLE_SET_NULL;
}
