/* SPDX-License-Identifier: Apache-2.0 */

/* A name in an archive may consist of any bytes. If it were quoted unchanged, a line break could
 * forge a log line, an escape sequence could control the terminal, and an incomplete character
 * would make the whole JSON document invalid. */

#include "agent/image-helper/process/safe-message.h"

#include "common/cleanup.h"
#include "common/utf8.h"

static bool is_inside(char byte) {
        return ((unsigned char) byte & 0xc0) == 0x80;
}

/* A message begins with the place and ends with the reason. */
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
