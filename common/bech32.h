/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bech32 (BIP 173), the encoding of age keys: a prefix, "1", and digits with a checksum.
 */

#include "common/macros.h"

#include <stdint.h>

enum {
        BECH32_DATA_MAX = 64, /* bytes */
        BECH32_CHECKSUM_LENGTH = 6
};

/* Decodes a text of exactly 'size' bytes, in lower or in upper case; 'prefix' is in lower case.
 * 0 or -EINVAL. */
int bech32_decode(const char *text, const char *prefix, uint8_t *ret, size_t size);

/* Writes lower-case characters and a NUL: strlen(prefix) + 1 + (size * 8 + 4) / 5 + 6 + 1 bytes. */
void bech32_encode(const char *prefix, const uint8_t *data, size_t size, char *ret);
