/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/serve/serve-private.h"

#include "common/cleanup.h"

int text_say(Text *text, const char *before, const char *json, const char *after) {
        int n;

        text_done(text);
        n = asprintf(&text->text, "%s%s%s", before, json, after);
        if (n < 0) {
                text->text = NULL;
                return -ENOMEM;
        }
        text->length = (size_t) n;
        return 1;
}

static size_t take(Text *text, char *buffer, size_t size) {
        size_t n = MIN(size, text->length - text->taken);

        memcpy(buffer, text->text + text->taken, n);
        text->taken += n;
        return n;
}

ssize_t text_read(Text *text, int (*next)(void *), void *userdata, char *buffer, size_t size) {
        size_t n = 0;

        while (n < size) {
                int r;

                if (text->taken < text->length) {
                        n += take(text, buffer + n, size - n);
                        continue;
                }
                r = next(userdata);
                if (r <= 0)
                        return n > 0 ? (ssize_t) n : r;
        }
        return (ssize_t) n;
}

void text_done(Text *text) {
        free(text->text);
        *text = (Text){ 0 };
}
