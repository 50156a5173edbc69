/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Splits a stream into lines, such as the events of a watch, which are one JSON object each. */

#include "common/buffer.h"

typedef struct LineBuffer {
        Buffer bytes;
        size_t start;      /* of the bytes that have not been taken yet */
        size_t n_searched; /* how many of these were searched without finding a newline */
} LineBuffer;

#define cleanup_line_buffer cleanup_with(line_buffer_done)

/* Appends received bytes; at most 'max' bytes may then wait to be taken, which limits the length of
 * a line. 0; -EFBIG if there would be more, or -ENOMEM: nothing is appended. */
int line_buffer_push(LineBuffer *lines, const void *data, size_t length, size_t max);

/* Takes the first line, without its newline; it is valid until the next call. False if there is no
 * complete line; if the buffer is empty, its memory is freed. */
bool line_buffer_take(LineBuffer *lines, const char **ret_line, size_t *ret_length);

void line_buffer_done(LineBuffer *lines);

/* The length of the first line of a text in bytes, with its newline; the length of the text if it
 * has none. */
size_t text_line_length(const char *text, size_t length);
