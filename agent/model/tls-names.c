/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/tls-names.h"

#include "common/macros.h"
#include "common/text.h"

#include <errno.h>

/* clang-format off */
static const TlsCipherSuite suites[] = {
        { "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA", "AES-128-GCM", "AEAD" },
        { "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA", "AES-256-GCM", "AEAD" },
        { "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA", "CHACHA20-POLY1305", "AEAD" },
        { "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "ECDHE-ECDSA", "CHACHA20-POLY1305", "AEAD" },
        { "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA", "AES-128-CBC", "SHA1" },
        { "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA", "AES-256-CBC", "SHA1" },
        { "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "ECDHE-ECDSA", "AES-128-CBC", "SHA256" },
        { "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA", "AES-128-GCM", "AEAD" },
        { "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA", "AES-256-GCM", "AEAD" },
        { "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA", "CHACHA20-POLY1305", "AEAD" },
        { "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "ECDHE-RSA", "CHACHA20-POLY1305", "AEAD" },
        { "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA", "AES-128-CBC", "SHA1" },
        { "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA", "AES-256-CBC", "SHA1" },
        { "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA", "AES-128-CBC", "SHA256" },
        /* TLS 1.3: always offered, as in Go */
        { .name = "TLS_AES_128_GCM_SHA256" },
        { .name = "TLS_AES_256_GCM_SHA384" },
        { .name = "TLS_CHACHA20_POLY1305_SHA256" },
        /* insecure, or without forward secrecy */
        { .name = "TLS_RSA_WITH_AES_128_GCM_SHA256" },
        { .name = "TLS_RSA_WITH_AES_256_GCM_SHA384" },
        { .name = "TLS_RSA_WITH_AES_128_CBC_SHA" },
        { .name = "TLS_RSA_WITH_AES_256_CBC_SHA" },
        { .name = "TLS_RSA_WITH_AES_128_CBC_SHA256" },
        { .name = "TLS_RSA_WITH_3DES_EDE_CBC_SHA" },
        { .name = "TLS_RSA_WITH_RC4_128_SHA" },
        { .name = "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA" },
        { .name = "TLS_ECDHE_RSA_WITH_RC4_128_SHA" },
        { .name = "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA" },
};

static const struct { int64_t curve_id; const char *group; } groups[] = {
        { 29, "GROUP-X25519" },
        { 23, "GROUP-SECP256R1" },
        { 24, "GROUP-SECP384R1" },
        { 25, "GROUP-SECP521R1" },
};
/* clang-format on */

const TlsCipherSuite *tls_cipher_suite_find(const char *name) {
        for (size_t i = 0; i < N_ELEMENTS(suites); i++)
                if (streq(suites[i].name, name))
                        return &suites[i];
        return NULL;
}

const char *tls_group_find(int64_t curve_id) {
        for (size_t i = 0; i < N_ELEMENTS(groups); i++)
                if (groups[i].curve_id == curve_id)
                        return groups[i].group;
        return NULL;
}

int check_tls_cipher_suite(const char *value, Error *reterr) {
        if (tls_cipher_suite_find(value))
                return 0;
        return error_setf(reterr, EINVAL,
                          "must be the IANA name of a cipher suite such as "
                          "'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256', not '%s'",
                          value);
}

int check_tls_version(const char *value, Error *reterr) {
        if (TEXT_IS_ANY_OF(value, "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"))
                return 0;
        return error_setf(reterr, EINVAL, "must be 'VersionTLS12' or 'VersionTLS13', not '%s'",
                          value);
}
