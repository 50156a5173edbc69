/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/secrets/secret-storage.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/encrypted-text.h"
#include "common/log.h"
#include "common/text.h"

#include <stdlib.h>

#define MAKE_RETRY_USEC (10 * USEC_PER_SEC)

struct SecretStorage {
        SecretStorageConfig config;
        KeyFile *key;
        uint64_t made_at; /* boot time at which a key was last requested; 0: never */
        void (*on_changed)(void *userdata);
        void *userdata;
};

static void on_storage_key_changed(void *userdata) {
        const SecretStorage *storage = userdata;

        if (storage->on_changed)
                storage->on_changed(storage->userdata);
}

int secret_storage_new(const SecretStorageConfig *config, SecretStorage **ret) {
        cleanup_with(secret_storage_freep) SecretStorage *storage = calloc(1, sizeof(*storage));
        int r;

        if (!storage)
                return -ENOMEM;
        storage->config = *config;
        r = key_file_new(&(KeyFileConfig){ .event = config->event,
                                           .role = &storage_key_role,
                                           .state_dir = config->state_dir,
                                           .on_changed = on_storage_key_changed,
                                           .userdata = storage },
                         &storage->key);
        if (r < 0)
                return r;
        if (config->is_kept_clear)
                log_warning("'secretsAtRest: clear' is configured: Secrets and tokens that are "
                            "kept in %s are not encrypted, in files that only root can read",
                            config->state_dir);
        *ret = TAKE_PTR(storage);
        return 0;
}

SecretStorage *secret_storage_free(SecretStorage *storage) {
        if (!storage)
                return NULL;
        key_file_free(storage->key);
        free(storage);
        return NULL;
}

void secret_storage_set_callback(SecretStorage *storage, void (*on_changed)(void *userdata),
                                 void *userdata) {
        storage->on_changed = on_changed;
        storage->userdata = userdata;
}

/* Requests a key at most every few seconds, because each pending write calls this. */
static int make_storage_key(SecretStorage *storage) {
        uint64_t now = now_boottime_usec();
        int r;

        if (storage->made_at > 0 && now - storage->made_at < MAKE_RETRY_USEC)
                return key_file_error(storage->key) ? -EKEYREJECTED : -EAGAIN;
        storage->made_at = now;
        r = key_file_change(storage->key, KEY_FILE_MAKE, NULL);
        if (r < 0)
                return r == -EBUSY ? -EAGAIN : r;
        return key_file_error(storage->key) ? -EKEYREJECTED : -EAGAIN;
}

static int get_key_to_encrypt(SecretStorage *storage, const AgeKey **ret) {
        size_t n;
        int r = key_file_get(storage->key, ret, &n, NULL);

        if (r == -EKEYREJECTED) {
                key_file_discard(storage->key);
                r = key_file_get(storage->key, ret, &n, NULL);
        }
        return r == -ENOKEY ? make_storage_key(storage) : r;
}

void secret_storage_start(SecretStorage *storage) {
        const AgeKey *keys;
        size_t n;

        if (key_file_get(storage->key, &keys, &n, NULL) == -ENOKEY &&
            !storage->config.is_kept_clear)
                (void) make_storage_key(storage);
}

int secret_storage_encrypt(SecretStorage *storage, const char *name, const char *text, char **ret) {
        const AgeKey *key;
        int r;

        if (storage->config.is_kept_clear) {
                *ret = strdup(text);
                return *ret ? 0 : -ENOMEM;
        }
        r = get_key_to_encrypt(storage, &key);
        return r < 0 ? r : encrypt_text(key->bytes, name, text, ret);
}

int secret_storage_decrypt(SecretStorage *storage, const char *name, const char *text, char **ret) {
        const AgeKey *keys;
        size_t n;
        int r;

        if (!is_encrypted_text(text)) {
                *ret = strdup(text);
                return *ret ? 0 : -ENOMEM;
        }
        r = key_file_get(storage->key, &keys, &n, NULL);
        if (r < 0)
                return r == -ENOKEY ? -EKEYREJECTED : r;
        r = decrypt_text(keys->bytes, name, text, ret);
        return r == -EBADMSG ? -EKEYREJECTED : r;
}

bool secret_storage_is_open(SecretStorage *storage) {
        const AgeKey *keys;
        size_t n;

        return !storage->config.is_kept_clear && key_file_get(storage->key, &keys, &n, NULL) >= 0;
}

char *secret_storage_describe(const SecretStorage *storage) {
        const char *error = key_file_error(storage->key);

        return strdup(storage->config.is_kept_clear ? "clear" : error ? error : "sealed");
}
