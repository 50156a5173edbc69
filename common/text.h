/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Newly allocated strings. A pointer is the result, and NULL means that there was no memory: the
 * caller checks it once, for several texts together, and frees the results. */

#include "common/macros.h"

#include <stdarg.h>

/* Prints 'format' into memory that the caller frees. NULL: out of memory. */
char *text_format(const char *format, ...) printf_like(1, 2);
char *text_vformat(const char *format, va_list ap) printf_like(1, 0);

/* Puts a copy of 'value', which may be NULL and may point into the old one, in place of '*text',
 * which is freed. 0; -ENOMEM: '*text' is NULL, as a text that was true before may be wrong now. */
int text_replace(char **text, const char *value);

/* Appends "format" printed; a NULL '*text' is an empty one. 0; -ENOMEM: '*text' is as it was. */
int text_appendf(char **text, const char *format, ...) printf_like(2, 3);

/* The items of 'strv', which may be NULL, with 'separator' between them, in memory that the caller
 * frees. NULL: out of memory. */
char *text_join(char *const *strv, const char *separator);

/* Whether 'text' is one of 'words', which end with NULL. */
bool text_is_one_of(const char *text, const char *const *words);

/* The same for words in the arguments. */
#define TEXT_IS_ANY_OF(text, ...) text_is_one_of(text, (const char *const[]){ __VA_ARGS__, NULL })
