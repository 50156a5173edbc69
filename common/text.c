/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text.h"

#include "common/buffer.h"
#include "common/cleanup.h"

#include <errno.h>
#include <stdint.h>

char *text_vformat(const char *format, va_list ap) {
        char *text = NULL;

        return vasprintf(&text, format, ap) < 0 ? NULL : text;
}

char *text_format(const char *format, ...) {
        va_list ap;
        char *text;

        va_start(ap, format);
        text = text_vformat(format, ap);
        va_end(ap);
        return text;
}

int text_replace(char **text, const char *value) {
        char *old = *text; /* 'value' may be a part of the old text */

        *text = value ? strdup(value) : NULL;
        free(old);
        return value && !*text ? -ENOMEM : 0;
}

int text_appendf(char **text, const char *format, ...) {
        cleanup_free char *more = NULL;
        char *whole = NULL;
        va_list ap;

        va_start(ap, format);
        more = text_vformat(format, ap);
        va_end(ap);
        if (more)
                whole = text_format("%s%s", strna(*text), more);
        if (!whole)
                return -ENOMEM;
        free(*text);
        *text = whole;
        return 0;
}

char *text_join(char *const *strv, const char *separator) {
        cleanup_buffer Buffer joined = { 0 };
        int r = buffer_append(&joined, NULL, 0, SIZE_MAX);

        for (size_t i = 0; r >= 0 && strv && strv[i]; i++) {
                if (i > 0)
                        r = buffer_append(&joined, separator, strlen(separator), SIZE_MAX);
                if (r >= 0)
                        r = buffer_append(&joined, strv[i], strlen(strv[i]), SIZE_MAX);
        }
        return r < 0 ? NULL : buffer_take(&joined);
}

bool text_is_one_of(const char *text, const char *const *words) {
        for (; *words; words++)
                if (streq(text, *words))
                        return true;
        return false;
}
