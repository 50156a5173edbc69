/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Base64 of RFC 4648, with padding; line breaks are skipped. Compatible with the API server, unlike
 * GnuTLS: the API server refuses blanks, which GnuTLS accepts, and ignores bits beyond the last
 * byte, for which GnuTLS refuses the text. */

#include "common/macros.h"

/* Decodes into memory that the caller frees, and that ends with an additional NUL. 0, -EINVAL,
 * -ENOMEM. */
int base64_decode(const char *text, char **ret_data, size_t *ret_length);

/* The same, but the padding may be missing completely. */
int base64_decode_unpadded(const char *text, char **ret_data, size_t *ret_length);

/* Writes the digits and a NUL: ((length + 2) / 3) * 4 + 1 characters. */
void base64_encode(const void *data, size_t length, char *ret);
