/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/http/request-url.h"

#include <errno.h>
#include <string.h>

void url_write_components(FILE *out, const char *const *names, size_t n) {
        for (size_t i = 0; i < n; i++) {
                fputc('/', out);
                url_write_escaped(out, names[i]);
        }
}

void url_write_argument(FILE *out, const char *name, const char *value) {
        if (!value)
                return;
        fprintf(out, "%s=", name);
        url_write_escaped(out, value);
        fputc('&', out);
}

int split_url_path(char *path, const char **ret_parts, int max) {
        int n = 0;

        for (char *part = strsep(&path, "/"); part; part = strsep(&path, "/")) {
                if (n == max || part[0] == '\0')
                        return -EINVAL;
                ret_parts[n++] = part;
        }
        return n;
}
