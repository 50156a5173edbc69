/* SPDX-License-Identifier: Apache-2.0 */
#include "common/url-escape.h"

#include "common/macros.h"
#include "common/text.h"

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

char *url_mask_secrets(const char *url) {
        const char *authority = strstr(url, "://");
        size_t n_scheme = authority ? (size_t) (authority + 3 - url) : 0;
        size_t n = strcspn(url + n_scheme, "/?#"), n_user = 0;
        const char *rest = url + n_scheme + n;

        for (size_t i = 0; i < n; i++)
                if (url[n_scheme + i] == '@')
                        n_user = i + 1;
        return text_format("%.*s%s%.*s%s", (int) n_scheme, url, n_user > 0 ? "<masked>@" : "",
                           (int) (n - n_user), url + n_scheme + n_user,
                           rest[0] && !streq(rest, "/") ? "/<masked>" : rest);
}

void url_write_escaped(FILE *out, const char *text) {
        for (; *text; text++)
                if (is_url_unreserved(*text))
                        fputc(*text, out);
                else
                        fprintf(out, "%%%02X", (unsigned char) *text);
}
