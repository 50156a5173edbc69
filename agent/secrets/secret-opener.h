/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The header of the module. Decrypts encrypted Secrets of manifests when a pod needs them: with
 * mainstay-secret (age), one process for all Secrets that wait, or with systemd-creds (credentials
 * of systemd). Decrypted values exist only in memory, as long as the manifest contains the Secret.
 */

#include "agent/model/object.h"
#include "agent/secrets/key-file.h"

#include <stdio.h>

typedef struct SecretOpener SecretOpener;

typedef struct SecretOpenerConfig {
        sd_event *event;
        const char *helper_path;           /* mainstay-secret; borrowed */
        KeyFile *identity;                 /* borrowed */
        void (*on_opened)(void *userdata); /* called from the loop: a Secret was opened, or cannot
                                            * be opened */
        void *userdata;
} SecretOpenerConfig;

int secret_opener_new(const SecretOpenerConfig *config, SecretOpener **ret);
SecretOpener *secret_opener_free(SecretOpener *opener);
DEFINE_CLEANUP(SecretOpener *, secret_opener_free)

/* The Secret with decrypted values, borrowed until manifests change. 0; -EAGAIN: it is being
 * decrypted, and on_opened() follows; -EKEYREJECTED: it cannot be decrypted; with a message that
 * names the key and the cause. */
int secret_opener_open(SecretOpener *opener, const DataObject *object, const DataObject **ret,
                       Error *reterr);

/* Whether this node can decrypt the Secret, for display. A Secret that no pod needs is decrypted
 * and discarded, and a failure is not logged. 0; -EAGAIN: try again in a moment; -EKEYREJECTED with
 * a message, as above; -ENOMEM. */
int secret_opener_check(SecretOpener *opener, const DataObject *object, Error *reterr);

/* The identities have changed: Secrets that could not be decrypted are tried again. */
void secret_opener_retry(SecretOpener *opener);

/* Forgets the Secrets that manifests no longer contain. */
void secret_opener_sweep(SecretOpener *opener,
                         const DataObject *(*find)(const ObjectKey *key, void *userdata),
                         void *userdata);

/* Prints names and states, but no values, for `mainstay debug dump`. */
void secret_opener_dump(const SecretOpener *opener, FILE *out);
