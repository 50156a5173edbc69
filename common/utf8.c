/* SPDX-License-Identifier: Apache-2.0 */
#include "common/utf8.h"

#include <stdint.h>
#include <string.h>

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
        /* Overlong forms, surrogates, values beyond the last plane. */
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

uint32_t utf8_decode(const void *text, size_t n) {
        const uint8_t *p = text;
        uint32_t character = n > 1 ? p[0] & (0x7fU >> n) : p[0];

        for (size_t i = 1; i < n; i++)
                character = character << 6 | (p[i] & 0x3fU);
        return character;
}

/* Characters that control a terminal (C0, DEL, C1), break a line or change the writing direction.
 */
static bool controls_terminal(uint32_t c) {
        return c < ' ' || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
               (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t utf8_printable_length(const void *text, size_t left) {
        size_t n = utf8_character_length(text, left);

        return n > 0 && !controls_terminal(utf8_decode(text, n)) ? n : 0;
}

void utf8_sanitize(char *text) {
        size_t left = strlen(text);

        while (left > 0) {
                size_t n = utf8_printable_length(text, left);

                if (n == 0) {
                        *text = strchr("\n\r\t", *text) ? ' ' : '?';
                        n = 1;
                }
                text += n;
                left -= n;
        }
}
