/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* OCI digests: "sha256:" and 64 lower-case hex digits, no other algorithm. Only a string that
 * passes digest_is_valid() may become part of a file name. */

#include "common/hash.h"

#define DIGEST_PREFIX "sha256:"

enum {
        DIGEST_SIZE = sizeof(DIGEST_PREFIX) - 1 + SHA256_HEX_SIZE
};

bool digest_is_valid(const char *text);

/* Copies a valid digest. 0 or -EINVAL. */
int digest_parse(const char *text, char ret[DIGEST_SIZE]);

/* The 64 digits of a valid digest, for file names. */
const char *digest_hex(const char *digest);

/* The digest of bytes in memory. */
void digest_of(const void *data, size_t length, char ret[DIGEST_SIZE]);

/* The ChainID of a layer, which identifies it together with all layers below. 'parent' is the
 * ChainID of the layer below, NULL for the lowest. */
void digest_chain(const char *parent, const char *diff_id, char ret[DIGEST_SIZE]);
