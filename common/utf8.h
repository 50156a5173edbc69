/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing beyond the last plane. */

#include "common/macros.h"

#include <stdint.h>

/* The length of the character at the start of 'text', of which 'left' bytes are available (at least
 * one); 0 if it is invalid. */
size_t utf8_character_length(const void *text, size_t left);

/* Decodes the character of 'n' bytes, a result of utf8_character_length(). */
uint32_t utf8_decode(const void *text, size_t n);

/* Whether the whole text is valid, without NUL. */
bool utf8_is_text(const char *text, size_t length);

/* The same; 0 also for characters that must not reach a terminal or a log unchanged: control
 * characters (C0, C1), line separators, characters that change the writing direction. */
size_t utf8_printable_length(const void *text, size_t left);

/* Makes an untrusted text printable, in place: newlines and tabs become blanks, each invalid or
 * unprintable byte becomes '?'. */
void utf8_sanitize(char *text);
