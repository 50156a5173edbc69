/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* SHA-256 with GnuTLS, in lower-case hex as in OCI digests and container IDs; and SHA-1, which is
 * insecure, but used by protocols. */

#include "common/macros.h"

#include <stdint.h>

enum {
        SHA256_SIZE = 32,
        SHA256_HEX_SIZE = 65,
        SHA1_SIZE = 20,
};

typedef struct Sha256 Sha256;

/* NULL: out of memory, or an error in the library. */
Sha256 *sha256_new(void);
void sha256_update(Sha256 *hash, const void *data, size_t length);

/* Writes the hex digits and a NUL, and resets the hash. */
void sha256_finish(Sha256 *hash, char ret_hex[SHA256_HEX_SIZE]);
Sha256 *sha256_free(Sha256 *hash);
DEFINE_CLEANUP(Sha256 *, sha256_free)

/* The hash of data in memory. */
void sha256_hex(const void *data, size_t length, char ret_hex[SHA256_HEX_SIZE]);

/* HMAC (RFC 2104). */
void hmac_sha256_hex(const void *key, size_t key_length, const void *data, size_t length,
                     char ret_hex[SHA256_HEX_SIZE]);

void sha1(const void *data, size_t length, uint8_t ret[SHA1_SIZE]);
