/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Packets of the signer (mainstay-api --signer): a process with its own user, which holds the
 * serving key and verifies the certificates of clients. The first byte is the type of a packet.
 *
 * From the agent, on standard input:
 *   SIGNER_MATERIAL, the key of tickets, JSON: "certificate", "key", "clientCA", all PEM.
 *   SIGNER_CLIENT, with a descriptor: a connection of mainstay-api.
 * To the agent: the hash of the authorities in use, after each SIGNER_MATERIAL.
 *
 * From mainstay-api; each request has one reply, which starts with SIGNER_DONE, or with
 * SIGNER_FAILED before a message:
 *   SIGNER_GET_MATERIAL  JSON: "certificate", "clientCA", and "error" if newer ones are invalid
 *   SIGNER_GET_NONCE     the random bytes of a ServerHello
 *   SIGNER_SIGN          a SignerRequest and its data; the reply is the signature
 *   SIGNER_PROVE         a SignerProof and a handshake up to its client's signature; the reply
 *                        is a ticket */

#include <stdint.h>

enum {
        SIGNER_PACKET_MAX = 96 * 1024,
        SIGNER_NONCE_SIZE = 32,
        SIGNER_TRANSCRIPT_MAX = 64 * 1024,
};

typedef enum SignerPacket {
        SIGNER_MATERIAL = 'm',
        SIGNER_CLIENT = 'c',
        SIGNER_GET_MATERIAL = 'g',
        SIGNER_GET_NONCE = 'n',
        SIGNER_SIGN = 's',
        SIGNER_PROVE = 'p',
        SIGNER_DONE = '0',
        SIGNER_FAILED = '1',
} SignerPacket;

typedef enum SignedThing {
        SIGNED_TLS13,      /* the hash of a handshake, which its CertificateVerify signs */
        SIGNED_TLS12_HASH, /* the hash of a ServerKeyExchange and its random bytes */
        SIGNED_TLS12,      /* the same, unhashed, for keys that do not sign hashes */
} SignedThing;

/* Both ends are instances of the same program. */
typedef struct SignerRequest {
        uint32_t thing;       /* SignedThing */
        uint32_t algorithm;   /* gnutls_sign_algorithm_t */
        char certificate[65]; /* the hash of its PEM: of the certificate in use, or of the previous
                               * one */
} SignerRequest;

typedef struct SignerProof {
        uint32_t is_tls13;
        uint32_t hash; /* for TLS 1.3: a gnutls_digest_algorithm_t */
} SignerProof;
