/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A stream that is split into lines, such as the events of a watch, one JSON object each. */

#include "common/buffer.h"

typedef struct LineBuffer {
        Buffer bytes;
        size_t start;      /* of the bytes that have not been taken */
        size_t n_searched; /* of these, without a newline */
} LineBuffer;

#define cleanup_line_buffer cleanup_with(line_buffer_done)

/* Appends received bytes; at most 'max' bytes wait to be taken afterwards, so that no line is
 * longer. 0; -EFBIG if there would be more, -ENOMEM: nothing is appended. */
int line_buffer_push(LineBuffer *lines, const void *data, size_t length, size_t max);

/* Takes the first line, without its newline; it is valid until the next call. False if no whole
 * line waits; the memory of an empty buffer is freed then. */
bool line_buffer_take(LineBuffer *lines, const char **ret_line, size_t *ret_length);

void line_buffer_done(LineBuffer *lines);

/* The length of the first line of a text in bytes, with its newline; of all of it without one. */
size_t text_line_length(const char *text, size_t length);
