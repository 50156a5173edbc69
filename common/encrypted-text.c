/* SPDX-License-Identifier: Apache-2.0 */
#include "common/encrypted-text.h"

#include "common/base64.h"
#include "common/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEY_INFO "mainstay encrypted text"

enum {
        SALT_SIZE = 32,
        OVERHEAD = SALT_SIZE + CHACHA_TAG_SIZE,
        BASE64_GROUP = 3, /* bytes in a group */
        BASE64_DIGITS = 4
};

/* Each text has its own key, so the nonces need not be different. */
static const uint8_t nonce[CHACHA_NONCE_SIZE];

bool is_encrypted_text(const char *text) {
        return strncmp(text, ENCRYPTED_TEXT_PREFIX, strlen(ENCRYPTED_TEXT_PREFIX)) == 0;
}

static size_t base64_length(size_t length) {
        return (length + BASE64_GROUP - 1) / BASE64_GROUP * BASE64_DIGITS;
}

size_t encrypted_text_length(size_t length) {
        return strlen(ENCRYPTED_TEXT_PREFIX) + base64_length(length + OVERHEAD) + 1;
}

int encrypt_text(const uint8_t key[CHACHA_KEY_SIZE], const char *name, const char *text,
                 char **ret) {
        const size_t prefix = strlen(ENCRYPTED_TEXT_PREFIX), length = strlen(text);
        cleanup_free uint8_t *data = malloc(length + OVERHEAD);
        cleanup_free char *line = malloc(encrypted_text_length(length) + 1);
        uint8_t text_key[CHACHA_KEY_SIZE];
        int r;

        if (!data || !line)
                return -ENOMEM;
        r = fill_with_random(data, SALT_SIZE);
        if (r < 0)
                return r;
        chacha_derive_key(key, CHACHA_KEY_SIZE, data, SALT_SIZE, KEY_INFO, text_key);
        chacha_encrypt(&(ChachaBox){ text_key, nonce, name, strlen(name) }, text, length,
                       data + SALT_SIZE);
        explicit_bzero(text_key, sizeof(text_key));
        memcpy(line, ENCRYPTED_TEXT_PREFIX, prefix);
        base64_encode(data, length + OVERHEAD, line + prefix);
        memcpy(line + prefix + base64_length(length + OVERHEAD), "\n", 2);
        *ret = TAKE_PTR(line);
        return 0;
}

int decrypt_text(const uint8_t key[CHACHA_KEY_SIZE], const char *name, const char *text,
                 char **ret) {
        cleanup_free char *data = NULL;
        uint8_t text_key[CHACHA_KEY_SIZE];
        size_t length = 0;
        char *result;
        bool is_whole;
        int r = is_encrypted_text(text)
                        ? base64_decode(text + strlen(ENCRYPTED_TEXT_PREFIX), &data, &length)
                        : -EBADMSG;

        if (r < 0 || length < OVERHEAD)
                return r == -ENOMEM ? r : -EBADMSG;
        length -= OVERHEAD;
        result = calloc(1, length + 1);
        if (!result)
                return -ENOMEM;
        chacha_derive_key(key, CHACHA_KEY_SIZE, data, SALT_SIZE, KEY_INFO, text_key);
        is_whole = chacha_decrypt(&(ChachaBox){ text_key, nonce, name, strlen(name) },
                                  data + SALT_SIZE, length, (uint8_t *) result);
        explicit_bzero(text_key, sizeof(text_key));
        if (is_whole && !memchr(result, '\0', length)) {
                *ret = result;
                return 0;
        }
        explicit_bzero(result, length);
        free(result);
        return -EBADMSG;
}
