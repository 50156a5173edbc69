/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Public keys in PEM, with GnuTLS, of the types used to sign images: ECDSA on the curve P-256 with
 * SHA-256, and Ed25519. */

#include "common/error.h"
#include "common/macros.h"

enum {
        ED25519_KEY_SIZE = 32 /* bytes of a public key */
};

typedef struct PublicKey PublicKey;

/* Parses one SubjectPublicKeyInfo in PEM ("-----BEGIN PUBLIC KEY-----"). 0, or -EINVAL with a
 * message; -ENOMEM. */
int public_key_parse(const char *pem, PublicKey **ret, Error *reterr);

/* Creates a key from the 32 bytes of an Ed25519 key (RFC 8032). 0, -EINVAL; -ENOMEM. */
int public_key_from_ed25519(const void *bytes, PublicKey **ret);

/* Whether this key has signed the bytes. ECDSA signatures are in DER, Ed25519 signatures have 64
 * bytes. */
bool public_key_verify(const PublicKey *key, const void *data, size_t length, const void *signature,
                       size_t signature_length);

PublicKey *public_key_free(PublicKey *key);
DEFINE_CLEANUP(PublicKey *, public_key_free)
