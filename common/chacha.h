/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ChaCha20-Poly1305 of RFC 8439, and keys for it, derived by HKDF (RFC 5869) with SHA-256. */

#include "common/macros.h"

#include <stdint.h>

enum {
        CHACHA_KEY_SIZE = 32,
        CHACHA_NONCE_SIZE = 12,
        CHACHA_TAG_SIZE = 16
};

/* 'context' is authenticated with the data, but is not part of the result. */
typedef struct ChachaBox {
        const uint8_t *key;
        const uint8_t *nonce; /* used once with a key */
        const void *context;
        size_t context_length;
} ChachaBox;

/* 0 or -errno. */
int fill_with_random(void *data, size_t size);

/* HKDF with SHA-256 (RFC 5869); 'info' separates the purposes of keys of one secret. */
void chacha_derive_key(const void *secret, size_t size, const void *salt, size_t salt_size,
                       const char *info, uint8_t ret[CHACHA_KEY_SIZE]);

/* The result has 'length' bytes and the tag. */
void chacha_encrypt(const ChachaBox *box, const void *data, size_t length, uint8_t *ret);

/* 'length' is that of the result, which the tag follows in 'data'. False: it was changed, or is of
 * another key, nonce or context; the result must not be used. */
bool chacha_decrypt(const ChachaBox *box, const void *data, size_t length, uint8_t *ret);
