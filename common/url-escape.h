/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Text in paths and queries of URLs, and in forms. */

#include <stdio.h>

/* Escapes everything except letters, digits and "-._~" as %XX. The caller frees it; NULL: out of
 * memory. */
char *url_escape(const char *text);

/* The part of a URL that may be displayed: "https://example.com:8443/<masked>". User, password,
 * path and query, which may be secret, are masked. The caller frees it; NULL: out of memory. */
char *url_mask_secrets(const char *url);

/* Writes the same as url_escape() to a stream. */
void url_write_escaped(FILE *out, const char *text);
