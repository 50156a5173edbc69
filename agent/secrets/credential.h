/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Credentials of systemd, which systemd-creds(1) encrypts and decrypts: base64 text that is
 * encrypted with the key of this machine, its TPM2, or both, and bound to a name. */

#include "common/child.h"

#include <stdbool.h>

/* Starts to encrypt, or to decrypt, 'data'. The output of the child is the result. 0 or -errno. */
int credential_seal_start(sd_event *event, const char *name, const char *data, child_done_t done,
                          void *userdata, Child **ret, Error *reterr);
int credential_open_start(sd_event *event, const char *name, const char *data, size_t length,
                          child_done_t done, void *userdata, Child **ret, Error *reterr);

/* Checks the result. 0; -EKEYREJECTED with a message, which has nothing of the data: it failed, or,
 * of a sealed one, there is no key on this machine, so that everybody could open it. */
int credential_check_sealed(const ChildResult *result, Error *reterr);
int credential_check_opened(const ChildResult *result, Error *reterr);
