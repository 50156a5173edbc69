/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/tls/handshake-transcript.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <string.h>

enum {
        HEADER_SIZE = 4,
        MESSAGE_HASH = 254,
        SERVER_RANDOM_OFFSET = 2, /* after the version */
};

bool handshake_next_message(const void *transcript, size_t size, size_t *position,
                            HandshakeMessage *ret) {
        const unsigned char *bytes = (const unsigned char *) transcript + *position;
        size_t left = size - *position, length;

        if (left < HEADER_SIZE)
                return false;
        length = (size_t) bytes[1] << 16 | (size_t) bytes[2] << 8 | bytes[3];
        if (length > left - HEADER_SIZE)
                return false;
        *ret = (HandshakeMessage){ bytes[0], bytes + HEADER_SIZE, length, *position };
        *position += HEADER_SIZE + length;
        return true;
}

bool is_hello_retry(const HandshakeMessage *message) {
        /* SHA-256 of "HelloRetryRequest": RFC 8446, 4.1.3. */
        static const unsigned char random[] = {
                0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
                0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
                0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
        };

        return message->type == GNUTLS_HANDSHAKE_SERVER_HELLO &&
               message->length >= SERVER_RANDOM_OFFSET + sizeof(random) &&
               memcmp(message->body + SERVER_RANDOM_OFFSET, random, sizeof(random)) == 0;
}

int handshake_hash(const void *transcript, size_t size, gnutls_digest_algorithm_t hash,
                   uint8_t ret[64]) {
        size_t position = 0, rest = 0;
        HandshakeMessage first, second;
        gnutls_hash_hd_t handle;
        unsigned length = gnutls_hash_get_len(hash);
        bool has_retry;
        int code;

        if (length == 0 || length > 64 ||
            !handshake_next_message(transcript, size, &position, &first))
                return -EBADMSG;
        rest = position;
        has_retry = handshake_next_message(transcript, size, &position, &second) &&
                    is_hello_retry(&second);
        if (gnutls_hash_init(&handle, hash) < 0)
                return -EBADMSG;
        if (has_retry) {
                const unsigned char header[HEADER_SIZE] = { MESSAGE_HASH, 0, 0,
                                                            (unsigned char) length };

                code = gnutls_hash_fast(hash, transcript, rest, ret);
                if (code >= 0)
                        code = gnutls_hash(handle, header, sizeof(header));
                if (code >= 0)
                        code = gnutls_hash(handle, ret, length);
        } else {
                code = gnutls_hash(handle, transcript, rest);
        }
        if (code >= 0)
                code = gnutls_hash(handle, (const unsigned char *) transcript + rest, size - rest);
        gnutls_hash_deinit(handle, ret);
        return code < 0 ? -EBADMSG : (int) length;
}
