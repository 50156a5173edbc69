/* SPDX-License-Identifier: Apache-2.0 */
#include "common/tls-limits.h"

#include "common/macros.h"

#include <gnutls/x509.h>

enum {
        CHAIN_SIZE_MAX = 16 * KIB,       /* limit of parts, which GnuTLS parses in quadratic time */
        KEY_EXCHANGE_SIZE_MAX = 4 * KIB, /* an 8192-bit group and a signature */
        RSA_BITS_MAX = 8192,             /* for the modulus, as in Go's crypto/tls */
        RSA_EXPONENT_MAX = 4,            /* bytes, including the sign: 31 bits, as in Go's
                                          * crypto/rsa */
};

static bool is_rsa_key_too_large(gnutls_x509_crt_t certificate, unsigned bits) {
        gnutls_datum_t modulus = { 0 }, exponent = { 0 };
        bool is_too_large = bits > RSA_BITS_MAX ||
                            gnutls_x509_crt_get_pk_rsa_raw(certificate, &modulus, &exponent) < 0 ||
                            exponent.size > RSA_EXPONENT_MAX;

        gnutls_free(modulus.data);
        gnutls_free(exponent.data);
        return is_too_large;
}

int tls_check_key(const gnutls_datum_t *der) {
        gnutls_x509_crt_t certificate;
        unsigned bits = 0;
        int code = gnutls_x509_crt_init(&certificate);

        if (code < 0)
                return code;
        code = gnutls_x509_crt_import(certificate, der, GNUTLS_X509_FMT_DER);
        if (code >= 0)
                code = gnutls_x509_crt_get_pk_algorithm(certificate, &bits);
        if (code == GNUTLS_PK_RSA || code == GNUTLS_PK_RSA_PSS)
                code = is_rsa_key_too_large(certificate, bits) ? GNUTLS_E_INSUFFICIENT_SECURITY : 0;
        else if (code == GNUTLS_PK_ECDSA || code == GNUTLS_PK_EDDSA_ED25519 ||
                 code == GNUTLS_PK_EDDSA_ED448)
                code = 0;
        else if (code >= 0)
                code = GNUTLS_E_UNSUPPORTED_CERTIFICATE_TYPE; /* another key type of any size, such
                                                               * as DSA */
        gnutls_x509_crt_deinit(certificate);
        return code;
}

/* The key of the first certificate is used in the handshake; the keys of the others verify the
 * chain. */
static int check_peer_keys(gnutls_session_t session) {
        unsigned n = 0;
        const gnutls_datum_t *certificates = gnutls_certificate_get_peers(session, &n);

        for (unsigned i = 0; certificates && i < n; i++) {
                int code = tls_check_key(&certificates[i]);

                if (code < 0)
                        return code;
        }
        return 0;
}

int tls_check_peer_message(gnutls_session_t session, unsigned type, unsigned when,
                           unsigned is_incoming, const gnutls_datum_t *message) {
        if (!is_incoming)
                return 0;
        switch (type) {
        case GNUTLS_HANDSHAKE_CERTIFICATE_PKT:
                return message->size > CHAIN_SIZE_MAX ? GNUTLS_E_HANDSHAKE_TOO_LARGE : 0;
        case GNUTLS_HANDSHAKE_SERVER_KEY_EXCHANGE:
                return message->size > KEY_EXCHANGE_SIZE_MAX ? GNUTLS_E_HANDSHAKE_TOO_LARGE
                                                             : check_peer_keys(session);
        case GNUTLS_HANDSHAKE_CERTIFICATE_VERIFY:
        case GNUTLS_HANDSHAKE_SERVER_HELLO_DONE: /* the client now encrypts with the key */
                return check_peer_keys(session);
        default:
                return 0;
        }
}

void tls_limit_peer(gnutls_session_t session) {
        gnutls_handshake_set_hook_function(session, (unsigned) GNUTLS_HANDSHAKE_ANY,
                                           GNUTLS_HOOK_PRE, tls_check_peer_message);
}
