/* SPDX-License-Identifier: Apache-2.0 */

/* Pieces of text for a response; see the header. */

#include "agent/http/stream-text.h"

#include "common/cleanup.h"
#include "common/text.h"

int stream_text_format(StreamText *text, const char *before, const char *json, const char *after) {
        stream_text_done(text);
        text->text = text_format("%s%s%s", before, json, after);
        if (!text->text)
                return -ENOMEM;
        text->length = strlen(text->text);
        return 1;
}

static size_t copy_stream_text(StreamText *text, char *buffer, size_t size) {
        size_t n = MIN(size, text->length - text->taken);

        memcpy(buffer, text->text + text->taken, n);
        text->taken += n;
        return n;
}

ssize_t stream_text_read(StreamText *text, int (*next)(void *), void *userdata, char *buffer,
                         size_t size) {
        size_t n = 0;

        while (n < size) {
                int r;

                if (text->taken < text->length) {
                        n += copy_stream_text(text, buffer + n, size - n);
                        continue;
                }
                r = next(userdata);
                if (r <= 0)
                        return n > 0 ? (ssize_t) n : r;
        }
        return (ssize_t) n;
}

void stream_text_done(StreamText *text) {
        free(text->text);
        *text = (StreamText){ 0 };
}

int watch_bookmark_format(WatchBookmark *bookmark, StreamText *text) {
        if (!bookmark->is_due)
                return 0;
        bookmark->is_due = false;
        return stream_text_format(text, "", "{\"type\":\"BOOKMARK\"}", "\n");
}
