/* SPDX-License-Identifier: Apache-2.0 */
#include "common/line-buffer.h"

#include <errno.h>
#include <string.h>

size_t text_line_length(const char *text, size_t length) {
        const char *newline = length > 0 ? memchr(text, '\n', length) : NULL;

        return newline ? (size_t) (newline - text) + 1 : length;
}

int line_buffer_push(LineBuffer *lines, const void *data, size_t length, size_t max) {
        buffer_drop(&lines->bytes, lines->start);
        lines->start = 0;
        return buffer_append(&lines->bytes, data, length, max);
}

bool line_buffer_take(LineBuffer *lines, const char **ret_line, size_t *ret_length) {
        size_t waiting = lines->bytes.length - lines->start;
        size_t n = lines->n_searched;
        const char *line;

        if (waiting == 0) {
                line_buffer_done(lines);
                return false;
        }
        line = lines->bytes.data + lines->start;
        n += text_line_length(line + n, waiting - n);
        if (line[n - 1] != '\n') {
                lines->n_searched = n;
                return false;
        }
        lines->start += n;
        lines->n_searched = 0;
        *ret_line = line;
        *ret_length = n - 1;
        return true;
}

void line_buffer_done(LineBuffer *lines) {
        buffer_done(&lines->bytes);
        *lines = (LineBuffer){ 0 };
}
