/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Credentials of systemd: base64 text that systemd-creds(1) makes. */

#include "common/error.h"

/* The program, a name that is looked up in PATH. */
#define CREDENTIAL_PROGRAM "systemd-creds"

/* Whether it is sealed: 0; -EKEYREJECTED with a message: it is no credential, or of the key that is
 * used on a machine that has none, which is public; -ENOMEM. */
int systemd_credential_check(const char *text, Error *reterr);
