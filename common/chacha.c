/* SPDX-License-Identifier: Apache-2.0 */
#include "common/chacha.h"

#include <errno.h>
#include <nettle/chacha-poly1305.h>
#include <nettle/hkdf.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <string.h>
#include <sys/random.h>

int fill_with_random(void *data, size_t size) {
        ssize_t n = getrandom(data, size, 0);

        return n < 0 ? -errno : (size_t) n == size ? 0 : -EIO;
}

void chacha_derive_key(const void *secret, size_t size, const void *salt, size_t salt_size,
                       const char *info, uint8_t ret[CHACHA_KEY_SIZE]) {
        struct hmac_sha256_ctx context;
        uint8_t extracted[SHA256_DIGEST_SIZE];

        hmac_sha256_set_key(&context, salt_size, salt);
        hkdf_extract(&context, (nettle_hash_update_func *) hmac_sha256_update,
                     (nettle_hash_digest_func *) hmac_sha256_digest, sizeof(extracted), size,
                     secret, extracted);
        hmac_sha256_set_key(&context, sizeof(extracted), extracted);
        hkdf_expand(&context, (nettle_hash_update_func *) hmac_sha256_update,
                    (nettle_hash_digest_func *) hmac_sha256_digest, sizeof(extracted), strlen(info),
                    (const uint8_t *) info, CHACHA_KEY_SIZE, ret);
        explicit_bzero(extracted, sizeof(extracted));
        explicit_bzero(&context, sizeof(context));
}

static void start_box(const ChachaBox *box, struct chacha_poly1305_ctx *ret) {
        chacha_poly1305_set_key(ret, box->key);
        chacha_poly1305_set_nonce(ret, box->nonce);
        if (box->context_length > 0)
                chacha_poly1305_update(ret, box->context_length, box->context);
}

void chacha_encrypt(const ChachaBox *box, const void *data, size_t length, uint8_t *ret) {
        struct chacha_poly1305_ctx context;

        start_box(box, &context);
        chacha_poly1305_encrypt(&context, length, ret, data);
        chacha_poly1305_digest(&context, CHACHA_TAG_SIZE, ret + length);
        explicit_bzero(&context, sizeof(context));
}

bool chacha_decrypt(const ChachaBox *box, const void *data, size_t length, uint8_t *ret) {
        struct chacha_poly1305_ctx context;
        uint8_t tag[CHACHA_TAG_SIZE];

        start_box(box, &context);
        chacha_poly1305_decrypt(&context, length, ret, data);
        chacha_poly1305_digest(&context, CHACHA_TAG_SIZE, tag);
        explicit_bzero(&context, sizeof(context));
        return memeql_sec(tag, (const uint8_t *) data + length, CHACHA_TAG_SIZE);
}
