/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The placeholder for a value of a Secret wherever the agent displays the Secret. It reveals only
 * the length. */

#include <stdbool.h>
#include <stddef.h>

enum {
        HIDDEN_VALUE_SIZE = 48,
};

/* "<hidden, 5 bytes>". Returns the buffer. */
const char *hidden_value_format(char buffer[HIDDEN_VALUE_SIZE], size_t length);

/* The length, if the text comes from hidden_value_format(). */
bool hidden_value_parse(const char *text, size_t *ret_length);
