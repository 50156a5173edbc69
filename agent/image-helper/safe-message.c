/* SPDX-License-Identifier: Apache-2.0 */

/* A name in an archive may be any bytes. Quoted unchanged, a line break would forge a line of the
 * log, an escape sequence would control the terminal, and half a character would make JSON of the
 * whole document invalid. */

#include "agent/image-helper/safe-message.h"

#include "common/cleanup.h"

#include <stdint.h>

/* By the first byte; 0 if it does not start a character. */
static size_t sequence_length(unsigned char first) {
        if (first < 0x80)
                return 1;
        if (first < 0xc0 || first >= 0xf8)
                return 0;
        return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Control characters, line and paragraph separators, changes of direction. */
static bool moves_cursor(uint32_t character) {
        return character < 0x20 || (character >= 0x7f && character < 0xa0) ||
               (character >= 0x2028 && character < 0x202f);
}

/* The number of bytes of the character at the start, 0 if it must not be printed. */
static size_t character_length(const unsigned char *text) {
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        size_t n = sequence_length(text[0]);
        uint32_t value = n > 1 ? text[0] & (0x7fU >> n) : text[0];

        for (size_t i = 1; i < n; i++) {
                if ((text[i] & 0xc0) != 0x80)
                        return 0;
                value = value << 6 | (text[i] & 0x3fU);
        }
        if (value < least[n] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
                return 0;
        return moves_cursor(value) ? 0 : n;
}

static void replace_unsafe_characters(char *text) {
        for (unsigned char *p = (unsigned char *) text; *p;) {
                size_t n = character_length(p);

                if (n == 0)
                        *p = '?';
                p += n > 0 ? n : 1;
        }
}

static bool is_inside(char byte) {
        return ((unsigned char) byte & 0xc0) == 0x80;
}

/* The place is at the start of a message, the reason at its end. */
static void shorten_message(char *text) {
        static const char gap[] = " … ";
        size_t length = strlen(text), head = SAFE_MESSAGE_LENGTH_MAX / 2;
        size_t tail = length - (SAFE_MESSAGE_LENGTH_MAX / 2 - sizeof(gap));

        if (length <= SAFE_MESSAGE_LENGTH_MAX)
                return;
        while (is_inside(text[head]))
                head--;
        while (is_inside(text[tail]))
                tail++;
        memcpy(text + head, gap, sizeof(gap) - 1);
        head += sizeof(gap) - 1;
        memmove(text + head, text + tail, length - tail + 1);
}

char *format_safe_message(const Error *error, int r) {
        char *text = strdup(error_message(error, r));

        if (text) {
                replace_unsafe_characters(text);
                shorten_message(text);
        }
        return text;
}
