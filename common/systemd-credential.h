/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Credentials of systemd: base64 text produced by systemd-creds(1). */

#include "common/error.h"

/* The program, which is looked up in PATH. */
#define CREDENTIAL_PROGRAM "systemd-creds"

/* Checks that a credential is sealed. 0; -EKEYREJECTED with a message: it is not a credential, or
 * it was encrypted with the well-known key that is used on a machine without a key; -ENOMEM. */
int systemd_credential_check(const char *text, Error *reterr);
