/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A text encrypted with a symmetric key, as one line of text: a prefix and, in base64, a salt, from
 * which the key for this text is derived, and the output of ChaCha20-Poly1305. The text is bound to
 * a name, so that it cannot be used in place of another one. */

#include "common/chacha.h"

#define ENCRYPTED_TEXT_PREFIX "mainstay-encrypted-v1 "

bool is_encrypted_text(const char *text);

/* The length of the result for a text of 'length' bytes. */
size_t encrypted_text_length(size_t length);

/* The caller frees the result. 0 or -errno. */
int encrypt_text(const uint8_t key[CHACHA_KEY_SIZE], const char *name, const char *text,
                 char **ret);

/* The caller erases and frees the result. 0; -EBADMSG: the text was modified, or the key or name is
 * wrong; -ENOMEM. */
int decrypt_text(const uint8_t key[CHACHA_KEY_SIZE], const char *name, const char *text,
                 char **ret);
