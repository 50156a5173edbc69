/* SPDX-License-Identifier: Apache-2.0 */
#include "common/strv.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/text.h"

#include <stdarg.h>

size_t strv_length(char *const *strv) {
        size_t n = 0;

        while (strv && strv[n])
                n++;
        return n;
}

bool strv_equal(char *const *a, char *const *b) {
        size_t n = strv_length(a);

        if (n != strv_length(b))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!streq(a[i], b[i]))
                        return false;
        return true;
}

bool strv_contains(char *const *strv, const char *string) {
        for (size_t i = 0; strv && strv[i]; i++)
                if (streq(strv[i], string))
                        return true;
        return false;
}

static int strv_append_take(char ***strv, char *string) {
        size_t n = strv_length(*strv);

        if (!string || !ARRAY_RESERVE(*strv, n, 2)) {
                free(string);
                return -ENOMEM;
        }
        (*strv)[n] = string;
        (*strv)[n + 1] = NULL;
        return 0;
}

int strv_append(char ***strv, const char *string) {
        return strv_append_take(strv, strdup(string));
}

int strv_appendf(char ***strv, const char *format, ...) {
        char *string = NULL;
        va_list ap;

        va_start(ap, format);
        string = text_vformat(format, ap);
        va_end(ap);
        return strv_append_take(strv, string);
}

int strv_extend(char ***strv, char *const *from) {
        size_t n = strv_length(*strv), more = strv_length(from);

        if (more == 0)
                return 0;
        if (!ARRAY_RESERVE(*strv, n, more + 1))
                return -ENOMEM;
        for (size_t i = 0; i < more; i++) {
                (*strv)[n + i] = strdup(from[i]);
                if (!(*strv)[n + i])
                        return -ENOMEM;
        }
        (*strv)[n + more] = NULL;
        return 0;
}

char **strv_free(char **strv) {
        for (size_t i = 0; strv && strv[i]; i++)
                free(strv[i]);
        free(strv);
        return NULL;
}
