/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Ed25519 (RFC 8032) with GnuTLS: detached signatures, and the formats in which openssl and
 * minisign write keys and signatures. */

#include "common/public-key.h"

#include <stdint.h>

enum {
        ED25519_SIGNATURE_SIZE = 64,
        ED25519_SIGNATURES_MAX = 16
};

/* A public key in base64: 32 bytes; the 44 bytes of a SubjectPublicKeyInfo, which is the base64
 * line in a PEM file; or the 42 bytes of minisign. 0 or -EINVAL. */
int ed25519_key_parse(const char *text, uint8_t ret[ED25519_KEY_SIZE]);

/* Parses the signatures in a file: 64 bytes (openssl pkeyutl -sign -rawin); or lines, each the
 * base64 of a signature, or of a minisign signature without prehashing (minisign -S -l). Comments
 * of minisign, empty lines and other lines are skipped. Returns their number, at most
 * ED25519_SIGNATURES_MAX. */
size_t ed25519_signatures_parse(const char *data, size_t length,
                                uint8_t ret[][ED25519_SIGNATURE_SIZE]);

/* Whether the signature of the data is valid. */
bool ed25519_verify(const uint8_t key[ED25519_KEY_SIZE], const void *data, size_t length,
                    const uint8_t signature[ED25519_SIGNATURE_SIZE]);

/* Signs with a private key in PEM (openssl genpkey -algorithm ed25519). 'ret_key' is its public
 * key. 0, or -errno with a message. */
int ed25519_sign(const char *pem, const void *data, size_t length,
                 uint8_t ret[ED25519_SIGNATURE_SIZE], uint8_t ret_key[ED25519_KEY_SIZE],
                 Error *reterr);
