/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Credentials of systemd, which systemd-creds(1) encrypts and decrypts: base64 text that is
 * encrypted with the key of this machine, its TPM2, or both, and bound to a name. */

#include "common/child.h"

#include <stdbool.h>

/* Starts to encrypt or decrypt 'data'. The result is the output of the child. 0 or -errno. */
int credential_seal_start(sd_event *event, const char *name, const char *data, child_done_t done,
                          void *userdata, Child **ret, Error *reterr);
int credential_open_start(sd_event *event, const char *name, const char *data, size_t length,
                          child_done_t done, void *userdata, Child **ret, Error *reterr);

/* Checks the result. 0; -EKEYREJECTED with a message that reveals nothing about the data: the
 * operation failed, or the machine has no key for sealing, so that anybody could decrypt the
 * result. */
int credential_check_sealed(const ChildResult *result, Error *reterr);
int credential_check_opened(const ChildResult *result, Error *reterr);
