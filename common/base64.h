/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Base64 as RFC 4648 has it, with its padding; line ends within are skipped. */

#include "common/macros.h"

/* Gives the bytes in memory that the caller frees, with a NUL behind them that is not counted. 0,
 * -EINVAL, -ENOMEM. */
int base64_decode(const char *text, char **ret_data, size_t *ret_length);

/* Writes the digits and a NUL: ((length + 2) / 3) * 4 + 1 characters. */
void base64_encode(const void *data, size_t length, char *ret);
