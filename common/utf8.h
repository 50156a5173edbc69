/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* UTF-8 as RFC 3629 has it: nothing written too long, no surrogates, nothing beyond the last plane.
 */

#include "common/macros.h"

/* Length of the character that begins at 'text', of which 'left' bytes are there (at least one); 0
 * where that is none. */
size_t utf8_character_length(const void *text, size_t left);

/* All of it is characters, and none is a NUL. */
bool utf8_is_text(const char *text, size_t length);

/* Makes a text that somebody else wrote fit to be shown: what a terminal or a log would take for an
 * order, new lines too, becomes a blank or '?', in place. */
void utf8_sanitize(char *text);
