/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The proof of a handshake, which shows that a client with the key of its certificate took part in
 * it after the server's random bytes were chosen. mainstay-api, which performed the handshake, is
 * not trusted: the client's signature covers all of its messages. Pure. */

#include "agent/model/signer-protocol.h"
#include "common/error.h"

#include <gnutls/gnutls.h>

enum {
        PROOF_CHAIN_MAX = 8, /* certificates of a client */
};

typedef struct HandshakeProof {
        const unsigned char *nonce; /* the server's random bytes, SIGNER_NONCE_SIZE */
        gnutls_datum_t chain[PROOF_CHAIN_MAX];
        unsigned n; /* number of certificates: DER, the client's first */
} HandshakeProof;

/* The results point into 'transcript'. The caller decides whether the nonce is new and the
 * certificate is valid. 0; -EACCES with a message. */
int handshake_proof_verify(const SignerProof *kind, const void *transcript, size_t size,
                           HandshakeProof *ret, Error *reterr);
