/* SPDX-License-Identifier: Apache-2.0 */

/* A name in an archive may be any bytes. Quoted unchanged, a line break would forge a log line, an
 * escape sequence would control the terminal, and half a character would make the whole JSON
 * document invalid. */

#include "agent/image-helper/process/safe-message.h"

#include "common/cleanup.h"
#include "common/utf8.h"

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
                utf8_sanitize(text);
                shorten_message(text);
        }
        return text;
}
