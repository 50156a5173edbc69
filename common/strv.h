/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* NULL-terminated arrays of strings, as used by execve(). A NULL array is an empty one. */

#include "common/macros.h"

#define strv_foreach(item, strv) for (char **item = (strv); item && *item; item++)

size_t strv_length(char *const *strv);
bool strv_equal(char *const *a, char *const *b);
bool strv_contains(char *const *strv, const char *string);

/* Appends a copy. 0; or -ENOMEM, in which case the array is unchanged. */
int strv_append(char ***strv, const char *string);

/* Appends the formatted text. 0 or -ENOMEM. */
int strv_appendf(char ***strv, const char *format, ...) printf_like(2, 3);

/* Appends copies of all of 'from'. 0 or -ENOMEM. */
int strv_extend(char ***strv, char *const *from);

char **strv_free(char **strv);

DEFINE_CLEANUP(char **, strv_free)
#define cleanup_strv cleanup_with(strv_freep)
