/* SPDX-License-Identifier: Apache-2.0 */
#include "common/url-escape.h"

#include "common/macros.h"

#include <stdlib.h>

static bool is_url_unreserved(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '.' || c == '_' || c == '~';
}

char *url_escape(const char *text) {
        static const char hex[] = "0123456789ABCDEF";
        char *escaped = malloc(strlen(text) * 3 + 1), *at = escaped;

        if (!escaped)
                return NULL;
        for (const char *c = text; *c; c++) {
                unsigned char byte = (unsigned char) *c;

                if (is_url_unreserved(*c)) {
                        *at++ = *c;
                        continue;
                }
                *at++ = '%';
                *at++ = hex[byte >> 4];
                *at++ = hex[byte & 15];
        }
        *at = '\0';
        return escaped;
}

void url_write_escaped(FILE *out, const char *text) {
        for (; *text; text++)
                if (is_url_unreserved(*text))
                        fputc(*text, out);
                else
                        fprintf(out, "%%%02X", (unsigned char) *text);
}
