/* SPDX-License-Identifier: Apache-2.0 */
/* Compares resourceVersions and escapes URLs. */

#include "agent/kubeclient/resource-version.h"

#include "common/macros.h"

#include <stdlib.h>

static const char *strip_leading_zeros(const char *version) {
        static const char digits[] = "0123456789";

        if (!version || !version[0] || version[strspn(version, digits)])
                return NULL;
        return version + strspn(version, "0");
}

int resource_version_compare(const char *a, const char *b) {
        const char *x = strip_leading_zeros(a), *y = strip_leading_zeros(b);
        size_t n = x ? strlen(x) : 0, m = y ? strlen(y) : 0;

        if (!x || !y)
                return 0;
        if (n != m)
                return n < m ? -1 : 1;
        return strcmp(x, y);
}

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
