/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/hidden-value.h"

#include "common/macros.h"

#include <stdio.h>
#include <stdlib.h>

const char *hidden_value_format(char buffer[HIDDEN_VALUE_SIZE], size_t length) {
        (void) snprintf(buffer, HIDDEN_VALUE_SIZE, "<hidden, %zu bytes>", length);
        return buffer;
}

bool hidden_value_parse(const char *text, size_t *ret_length) {
        static const char prefix[] = "<hidden, ";
        char again[HIDDEN_VALUE_SIZE];

        if (strncmp(text, prefix, sizeof(prefix) - 1) != 0)
                return false;
        *ret_length = strtoul(text + sizeof(prefix) - 1, NULL, 10);
        return streq(hidden_value_format(again, *ret_length), text);
}
