/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buffer.h"

#include "common/array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

char *buffer_reserve(Buffer *buffer, size_t length) {
        if (length == SIZE_MAX || !ARRAY_RESERVE(buffer->data, buffer->length, length + 1))
                return NULL;
        return buffer->data + buffer->length;
}

int buffer_append(Buffer *buffer, const void *data, size_t length, size_t max) {
        char *end;

        if (buffer->length > max || length > max - buffer->length)
                return -EFBIG;
        end = buffer_reserve(buffer, length);
        if (!end)
                return -ENOMEM;
        if (length > 0)
                memcpy(end, data, length);
        end[length] = '\0';
        buffer->length += length;
        return 0;
}

void buffer_drop(Buffer *buffer, size_t length) {
        if (length == 0)
                return;
        buffer->length -= length;
        memmove(buffer->data, buffer->data + length, buffer->length + 1);
}

char *buffer_take(Buffer *buffer) {
        buffer->length = 0;
        return TAKE_PTR(buffer->data);
}

void buffer_done(Buffer *buffer) {
        free(buffer_take(buffer));
}

void buffer_erase(Buffer *buffer) {
        if (buffer->data)
                explicit_bzero(buffer->data, buffer->length);
        buffer_done(buffer);
}
