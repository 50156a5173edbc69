/* SPDX-License-Identifier: Apache-2.0 */
#include "common/utf8.h"

#include <stdint.h>

size_t utf8_character_length(const void *text, size_t left) {
        const uint8_t *p = text;
        size_t n = *p < 0x80   ? 1
                   : *p < 0xc2 ? 0
                   : *p < 0xe0 ? 2
                   : *p < 0xf0 ? 3
                   : *p < 0xf5 ? 4
                               : 0;

        if (n == 0 || n > left)
                return 0;
        for (size_t i = 1; i < n; i++)
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
        /* Overlong forms, surrogates, beyond the last plane. */
        if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
            (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
                return 0;
        return n;
}

bool utf8_is_text(const char *text, size_t length) {
        for (size_t i = 0; i < length;) {
                size_t n = text[i] ? utf8_character_length(text + i, length - i) : 0;

                if (n == 0)
                        return false;
                i += n;
        }
        return true;
}

void utf8_sanitize(char *text) {
        for (uint8_t *p = (uint8_t *) text; *p; p++)
                if (*p == '\n' || *p == '\r' || *p == '\t')
                        *p = ' ';
                else if (*p < ' ' || *p == 0x7f)
                        *p = '?';
                else if (*p == 0xc2 && p[1] >= 0x80 &&
                         p[1] < 0xa0) /* U+009B is equivalent to ESC [ */
                        p[0] = p[1] = '?';
}
