/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A file with keys of this node below <state>/secrets, sealed by systemd unless the configuration
 * permits unencrypted keys. The newest key is in use; older ones only decrypt data that was
 * encrypted before a rotation. */

#include "common/age-file.h"

#include <stdbool.h>
#include <systemd/sd-event.h>

typedef struct KeyFile KeyFile;

/* The properties of a key file. The texts are parts of messages. */
typedef struct KeyFileRole {
        const char *what;          /* "Identity of the node" */
        const char *file;          /* below <state>/secrets */
        const char *credential;    /* the name to which the credential is bound */
        const char *missing;       /* the remedy if the key is missing */
        const char *if_damaged;    /* the consequence */
        const char *if_not_sealed; /* the consequence and the remedy */
} KeyFileRole;

/* X25519 keys to which values of Secrets are encrypted, and the key of SecretStorage. */
extern const KeyFileRole node_identity_role, storage_key_role;

typedef struct KeyFileConfig {
        sd_event *event;
        const KeyFileRole *role;
        const char *state_dir;              /* borrowed */
        bool is_kept_clear;                 /* secretsAtRest: clear */
        void (*on_changed)(void *userdata); /* called from the loop: keys have become available, or
                                             * unavailable */
        void *userdata;
} KeyFileConfig;

typedef enum KeyFileAction {
        KEY_FILE_MAKE,   /* if there is none */
        KEY_FILE_ROTATE, /* adds a new key; older ones stay for decryption */
        KEY_FILE_REMOVE_OLD,
        N_KEY_FILE_ACTIONS,
} KeyFileAction;

extern const char *const key_file_action_names[N_KEY_FILE_ACTIONS];

/* Reads the file, but unseals nothing yet. 0 or -errno. */
int key_file_new(const KeyFileConfig *config, KeyFile **ret);
KeyFile *key_file_free(KeyFile *file);
DEFINE_CLEANUP(KeyFile *, key_file_free)

/* The keys, borrowed until the next turn of the loop. 0; -EAGAIN: they are being unsealed, and
 * on_changed() follows; -ENOKEY: there are none; -EKEYREJECTED; with a message. */
int key_file_get(KeyFile *file, const AgeKey **ret, size_t *ret_n, Error *reterr);

/* Starts a change; key_file_error() and key_file_to_json() show its result. 0; -EBUSY: another
 * change is in progress; or -errno; with a message. */
int key_file_change(KeyFile *file, KeyFileAction action, Error *reterr);

/* Why the keys are unavailable, or why the last change failed; borrowed; NULL: no error. */
const char *key_file_error(const KeyFile *file);

/* Sets aside keys that cannot be unsealed, so that there are none. */
void key_file_discard(KeyFile *file);

/* {"recipients": ["age1…"], "isBusy": …, "isSealed": …, "error": …}, newest recipient first. The
 * caller frees it; NULL: out of memory. */
char *key_file_to_json(const KeyFile *file);
