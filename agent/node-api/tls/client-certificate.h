/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "agent/model/api-user.h"
#include "common/error.h"

#include <gnutls/x509.h>
#include <stdint.h>

/* The user named by a client's certificate: CN, O and UID of its subject, if one of the authorities
 * has signed it for client authentication and it is valid now. The certificates are in DER, the
 * client's first. 0, with the end of its validity (realtime); -EACCES with a message; -ENOMEM. */
int client_certificate_authenticate(gnutls_x509_trust_list_t authorities,
                                    const gnutls_datum_t *certificates, unsigned n, ApiUser *ret,
                                    uint64_t *ret_expires, Error *reterr);
