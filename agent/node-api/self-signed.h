/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A certificate for a node that was given none. It proves nothing, but the connection is encrypted:
 * an API server without --kubelet-certificate-authority accepts it. */

#include "common/error.h"

#include <gnutls/gnutls.h>
#include <stdint.h>

/* Makes a key and a certificate for the host name, valid for a year. '*ret_renew_at' is when to
 * make the next one, in realtime. 0 or -errno with a message. */
int self_signed_set(gnutls_certificate_credentials_t credentials, const char *host_name,
                    uint64_t *ret_renew_at, Error *reterr);
