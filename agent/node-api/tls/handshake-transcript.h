/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The messages of a TLS handshake, concatenated as they are hashed: one byte with the type, three
 * with the length, then the content. Pure. */

#include "common/macros.h"

#include <gnutls/gnutls.h>
#include <stdint.h>

typedef struct HandshakeMessage {
        unsigned type;
        const unsigned char *body;
        size_t length;
        size_t offset; /* offset of the message in the transcript */
} HandshakeMessage;

/* The message at '*position', which is advanced. False: there is no complete message. */
bool handshake_next_message(const void *transcript, size_t size, size_t *position,
                            HandshakeMessage *ret);

/* Whether it is a ServerHello that requests another ClientHello (HelloRetryRequest). */
bool is_hello_retry(const HandshakeMessage *message);

/* The hash of TLS 1.3, in which the first of two ClientHellos is replaced by its hash. 'ret' has
 * room for the largest hash. Returns its length, or -EBADMSG. */
int handshake_hash(const void *transcript, size_t size, gnutls_digest_algorithm_t hash,
                   uint8_t ret[64]);
