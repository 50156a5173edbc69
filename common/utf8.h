/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* UTF-8 of RFC 3629: no overlong forms, no surrogates, nothing beyond the last plane. */

#include "common/macros.h"

/* The length of the character at the start of 'text', of which 'left' bytes are available (at least
 * one); 0 if it is invalid. */
size_t utf8_character_length(const void *text, size_t left);

/* Whether all of it is valid, without NUL. */
bool utf8_is_text(const char *text, size_t length);

/* Makes an untrusted text printable: control characters for a terminal or a log, including
 * newlines, become a blank or '?', in place. */
void utf8_sanitize(char *text);
