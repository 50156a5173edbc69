/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files in the age format (age-encryption.org/v1) for X25519 recipients, binary or armored.
 * Untrusted files are decrypted only in a confined process; encrypting and counting recipients need
 * no key. */

#include "common/error.h"

#include <stdint.h>

#define AGE_ARMOR_BEGIN "-----BEGIN AGE ENCRYPTED FILE-----"
#define AGE_ARMOR_END   "-----END AGE ENCRYPTED FILE-----"

enum {
        AGE_KEY_SIZE = 32,
        AGE_RECIPIENT_SIZE = 63,       /* "age1…" and a NUL */
        AGE_IDENTITY_SIZE = 75,        /* "AGE-SECRET-KEY-1…" and a NUL */
        AGE_HEADER_MAX = 256 * 1024,   /* bytes */
        AGE_RECIPIENTS_MAX = 1024,     /* per file */
        AGE_FILE_MAX = 2 * 1024 * 1024 /* bytes */
};

/* An X25519 key: a recipient, which is public, or an identity, which is secret. */
typedef struct AgeKey {
        uint8_t bytes[AGE_KEY_SIZE];
} AgeKey;

/* "age1…". 0 or -EINVAL. */
int age_recipient_parse(const char *text, AgeKey *ret);
void age_recipient_format(const AgeKey *recipient, char ret[AGE_RECIPIENT_SIZE]);

/* "AGE-SECRET-KEY-1…", as age-keygen prints it. 0 or -EINVAL. */
int age_identity_parse(const char *text, AgeKey *ret);
void age_identity_format(const AgeKey *identity, char ret[AGE_IDENTITY_SIZE]);

/* Creates a new identity; computes the recipient of an identity. 0 or -errno. */
int age_identity_make(AgeKey *ret);
void age_identity_recipient(const AgeKey *identity, AgeKey *ret);

/* Whether the data starts like an age file. */
bool age_is_file(const void *data, size_t length);

/* The number of X25519 recipients in the header, which does not reveal who they are. >= 0, -EBADMSG
 * with a message, or -ENOMEM. */
int age_count_recipients(const void *data, size_t length, Error *reterr);

/* Decrypts into memory that the caller erases and frees, and that ends with an additional NUL. 0;
 * -ENOKEY: not encrypted to any of the identities; -EBADMSG: damaged, or not an age file; both with
 * a message. */
int age_decrypt(const void *data, size_t length, const AgeKey *identities, size_t n, char **ret,
                size_t *ret_length, Error *reterr);

/* Encrypts into armored text, which the caller frees. 0, -EINVAL without recipients, -errno. */
int age_encrypt(const void *data, size_t length, const AgeKey *recipients, size_t n, char **ret);
