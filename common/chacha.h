/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ChaCha20-Poly1305 (RFC 8439), and keys for it derived with HKDF-SHA-256 (RFC 5869). */

#include "common/macros.h"

#include <stdint.h>

enum {
        CHACHA_KEY_SIZE = 32,
        CHACHA_NONCE_SIZE = 12,
        CHACHA_TAG_SIZE = 16
};

/* 'context' is authenticated together with the data, but is not part of the result. */
typedef struct ChachaBox {
        const uint8_t *key;
        const uint8_t *nonce; /* must be used only once with a key */
        const void *context;
        size_t context_length;
} ChachaBox;

/* 0 or -errno. */
int fill_with_random(void *data, size_t size);

/* HKDF-SHA-256 (RFC 5869); 'info' distinguishes the purposes of keys that are derived from one
 * secret. */
void chacha_derive_key(const void *secret, size_t size, const void *salt, size_t salt_size,
                       const char *info, uint8_t ret[CHACHA_KEY_SIZE]);

/* The result consists of 'length' bytes and the tag. */
void chacha_encrypt(const ChachaBox *box, const void *data, size_t length, uint8_t *ret);

/* 'length' is the length of the result; the tag follows the ciphertext in 'data'. False: the data
 * was modified, or the key, nonce or context is wrong; the result must not be used. */
bool chacha_decrypt(const ChachaBox *box, const void *data, size_t length, uint8_t *ret);
