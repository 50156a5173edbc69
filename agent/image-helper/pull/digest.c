/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/pull/digest.h"

#include "common/cleanup.h"

bool digest_is_valid(const char *text) {
        size_t prefix = strlen(DIGEST_PREFIX);

        return strncmp(text, DIGEST_PREFIX, prefix) == 0 &&
               strspn(text + prefix, "0123456789abcdef") == SHA256_HEX_SIZE - 1 &&
               text[DIGEST_SIZE - 1] == '\0';
}

int digest_parse(const char *text, char ret[DIGEST_SIZE]) {
        if (!digest_is_valid(text))
                return -EINVAL;
        memcpy(ret, text, DIGEST_SIZE);
        return 0;
}

const char *digest_hex(const char *digest) {
        return digest + strlen(DIGEST_PREFIX);
}

void digest_of(const void *data, size_t length, char ret[DIGEST_SIZE]) {
        memcpy(ret, DIGEST_PREFIX, strlen(DIGEST_PREFIX));
        sha256_hex(data, length, ret + strlen(DIGEST_PREFIX));
}

void digest_chain(const char *parent, const char *diff_id, char ret[DIGEST_SIZE]) {
        char both[2 * DIGEST_SIZE];

        if (!parent) {
                memmove(ret, diff_id, DIGEST_SIZE);
                return;
        }
        (void) snprintf(both, sizeof(both), "%s %s", parent, diff_id);
        digest_of(both, strlen(both), ret);
}
