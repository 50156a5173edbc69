/* SPDX-License-Identifier: Apache-2.0 */
#include "common/strv.h"

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
        char **longer = NULL;

        if (string)
                longer = reallocarray(*strv, n + 2, sizeof(char *));
        if (!longer) {
                free(string);
                return -ENOMEM;
        }
        longer[n] = string;
        longer[n + 1] = NULL;
        *strv = longer;
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
        char **longer = more > 0 ? reallocarray(*strv, n + more + 1, sizeof(char *)) : NULL;

        if (more == 0)
                return 0;
        if (!longer)
                return -ENOMEM;
        *strv = longer;
        for (size_t i = 0; i < more; i++) {
                longer[n + i] = strdup(from[i]);
                if (!longer[n + i])
                        return -ENOMEM;
        }
        longer[n + more] = NULL;
        return 0;
}

char **strv_free(char **strv) {
        for (size_t i = 0; strv && strv[i]; i++)
                free(strv[i]);
        free(strv);
        return NULL;
}
