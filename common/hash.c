/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hash.h"

#include "common/cleanup.h"

#include <assert.h>
#include <gnutls/crypto.h>

struct Sha256 {
        gnutls_hash_hd_t handle;
};

static void to_hex(const uint8_t digest[SHA256_SIZE], char ret_hex[SHA256_HEX_SIZE]) {
        static const char digits[] = "0123456789abcdef";

        for (size_t i = 0; i < SHA256_SIZE; i++) {
                ret_hex[2 * i] = digits[digest[i] >> 4];
                ret_hex[2 * i + 1] = digits[digest[i] & 15];
        }
        ret_hex[SHA256_HEX_SIZE - 1] = '\0';
}

Sha256 *sha256_new(void) {
        cleanup_free Sha256 *hash = calloc(1, sizeof(*hash));

        if (!hash || gnutls_hash_init(&hash->handle, GNUTLS_DIG_SHA256) < 0)
                return NULL;
        return TAKE_PTR(hash);
}

void sha256_update(Sha256 *hash, const void *data, size_t length) {
        int r = gnutls_hash(hash->handle, data, length);

        /* The library does not document any failure for an initialised hash. */
        assert(r >= 0);
        (void) r;
}

void sha256_finish(Sha256 *hash, char ret_hex[SHA256_HEX_SIZE]) {
        uint8_t digest[SHA256_SIZE];

        gnutls_hash_output(hash->handle, digest);
        to_hex(digest, ret_hex);
}

Sha256 *sha256_free(Sha256 *hash) {
        if (hash) {
                gnutls_hash_deinit(hash->handle, NULL);
                free(hash);
        }
        return NULL;
}

void sha256_hex(const void *data, size_t length, char ret_hex[SHA256_HEX_SIZE]) {
        uint8_t digest[SHA256_SIZE];
        int r = gnutls_hash_fast(GNUTLS_DIG_SHA256, data, length, digest);

        assert(r >= 0);
        (void) r;
        to_hex(digest, ret_hex);
}

void hmac_sha256_hex(const void *key, size_t key_length, const void *data, size_t length,
                     char ret_hex[SHA256_HEX_SIZE]) {
        uint8_t digest[SHA256_SIZE];
        int r = gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, key_length, data, length, digest);

        assert(r >= 0);
        (void) r;
        to_hex(digest, ret_hex);
}

void sha1(const void *data, size_t length, uint8_t ret[SHA1_SIZE]) {
        int r = gnutls_hash_fast(GNUTLS_DIG_SHA1, data, length, ret);

        assert(r >= 0);
        (void) r;
}
