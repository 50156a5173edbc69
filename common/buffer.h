/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A growable buffer of bytes, whose content is also a string: a NUL follows it. */

#include "common/macros.h"

typedef struct Buffer {
        char *data;    /* NULL until something is reserved or appended */
        size_t length; /* in bytes, without the NUL */
} Buffer;

#define cleanup_buffer cleanup_with(buffer_done)

/* Appends bytes; the buffer may have at most 'max' bytes afterwards. 0; -EFBIG if it would be
 * larger, or -ENOMEM: the buffer is unchanged. */
int buffer_append(Buffer *buffer, const void *data, size_t length, size_t max);

/* Makes room for 'length' more bytes and the NUL. Returns the address where they are written; the
 * caller adds the number of written bytes to buffer->length, and the NUL. NULL: out of memory. */
char *buffer_reserve(Buffer *buffer, size_t length);

/* Drops the first 'length' bytes. */
void buffer_drop(Buffer *buffer, size_t length);

/* The content, which the caller frees; the buffer is empty afterwards. NULL if it has no
 * content. */
char *buffer_take(Buffer *buffer);

/* Empties it; the second function overwrites the content first, for secrets. */
void buffer_done(Buffer *buffer);
void buffer_erase(Buffer *buffer);
