/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Encrypts secrets that the agent keeps on disk, with a key of this node in
 * <state>/secrets/storage-key, which systemd seals; or stores them unencrypted if so configured.
 * Without a key, callers must not store them. */

#include "agent/secrets/key-file.h"

typedef struct SecretStorage SecretStorage;

typedef struct SecretStorageConfig {
        sd_event *event;
        const char *state_dir; /* borrowed */
        bool is_kept_clear;    /* secretsAtRest: clear */
} SecretStorageConfig;

/* 0 or -errno. */
int secret_storage_new(const SecretStorageConfig *config, SecretStorage **ret);
SecretStorage *secret_storage_free(SecretStorage *storage);
DEFINE_CLEANUP(SecretStorage *, secret_storage_free)

/* Called from the loop: the key is available, or it is known that there is none. */
void secret_storage_set_callback(SecretStorage *storage, void (*on_changed)(void *userdata),
                                 void *userdata);

/* Unseals the key, or creates one, so that it is available when it is needed. */
void secret_storage_start(SecretStorage *storage);

/* Encrypts the text of the file 'name'; the caller frees the result. A key that cannot be unsealed
 * is replaced, because the caller still has the text. 0; -EAGAIN: there is no key yet, and
 * on_changed() follows; -EKEYREJECTED: there is none, which is logged; or -errno. */
int secret_storage_encrypt(SecretStorage *storage, const char *name, const char *text, char **ret);

/* Decrypts; an unencrypted text of an earlier version is returned unchanged. 0; -EAGAIN: the key is
 * being unsealed, and on_changed() follows; -EKEYREJECTED: the key cannot be unsealed, which is
 * logged, or the text was encrypted with another key or modified; or -errno. */
int secret_storage_decrypt(SecretStorage *storage, const char *name, const char *text, char **ret);

/* True if unencrypted files must be replaced, and a key is available. */
bool secret_storage_is_open(SecretStorage *storage);

/* "sealed", "clear", or why nothing is stored; the caller frees it; NULL: out of memory. */
char *secret_storage_describe(const SecretStorage *storage);
