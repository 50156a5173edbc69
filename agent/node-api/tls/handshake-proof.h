/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a handshake proves: that a client with the key of its certificate took part in it, after the
 * server's random bytes were chosen. mainstay-api, which has had the handshake, is not believed:
 * the client's signature is of all its messages. Pure. */

#include "agent/model/signer-protocol.h"
#include "common/error.h"

#include <gnutls/gnutls.h>

enum {
        PROOF_CHAIN_MAX = 8, /* certificates of a client */
};

typedef struct HandshakeProof {
        const unsigned char *nonce; /* the server's random bytes, SIGNER_NONCE_SIZE */
        gnutls_datum_t chain[PROOF_CHAIN_MAX];
        unsigned n; /* of them: DER, the client's first */
} HandshakeProof;

/* What it gives points into 'transcript'. Whether the nonce is new, and the certificate good, is
 * for the caller to say. 0; -EACCES with a message. */
int handshake_proof_verify(const SignerProof *kind, const void *transcript, size_t size,
                           HandshakeProof *ret, Error *reterr);
