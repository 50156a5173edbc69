/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Newly allocated strings. The result is a pointer, and NULL means that memory is exhausted, so the
 * caller can check several texts together. The caller frees the results. */

#include "common/macros.h"

#include <stdarg.h>

/* Formats a text, which the caller frees. NULL: out of memory. */
char *text_format(const char *format, ...) printf_like(1, 2);
char *text_vformat(const char *format, va_list ap) printf_like(1, 0);

/* Replaces '*text', which is freed, with a copy of 'value', which may be NULL and may point into
 * the old text. 0; -ENOMEM: '*text' is NULL, because the old text may no longer be correct. */
int text_replace(char **text, const char *value);

/* Appends the formatted text; a NULL '*text' counts as empty. 0; -ENOMEM: '*text' is unchanged. */
int text_appendf(char **text, const char *format, ...) printf_like(2, 3);

/* The items of 'strv', which may be NULL, joined with 'separator'; the caller frees the result.
 * NULL: out of memory. */
char *text_join(char *const *strv, const char *separator);

/* Whether 'text' is one of 'words', which are NULL-terminated. */
bool text_is_one_of(const char *text, const char *const *words);

/* The same for words given as arguments. */
#define TEXT_IS_ANY_OF(text, ...) text_is_one_of(text, (const char *const[]){ __VA_ARGS__, NULL })
