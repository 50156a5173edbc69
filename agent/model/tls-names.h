/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The TLS parameters of a KubeletConfiguration by their names in Go's crypto/tls, and the keywords
 * of GnuTLS's priority strings for them. */

#include "common/error.h"

#include <stdint.h>

typedef struct TlsCipherSuite {
        const char *name;         /* IANA: "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" */
        const char *key_exchange; /* "ECDHE-RSA"; NULL: a TLS 1.3 suite, or too weak to be
                                   * offered */
        const char *cipher, *mac; /* "AES-128-GCM", "AEAD" */
} TlsCipherSuite;

/* NULL: Go does not support it either. */
const TlsCipherSuite *tls_cipher_suite_find(const char *name);

/* The group for one of Go's CurveIDs: "GROUP-X25519". NULL: GnuTLS does not support it. */
const char *tls_group_find(int64_t curve_id);

/* field_check_t */
int check_tls_cipher_suite(const char *value, Error *reterr);
int check_tls_version(const char *value, Error *reterr);
