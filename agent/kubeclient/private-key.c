/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/private-key.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

int private_key_generate(gnutls_x509_privkey_t *ret) {
        int code = gnutls_x509_privkey_init(ret);

        if (code < 0)
                return code;
        return gnutls_x509_privkey_generate(*ret, GNUTLS_PK_ECDSA,
                                            GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
}

int private_key_import(const char *pem, size_t max, gnutls_x509_privkey_t *ret) {
        gnutls_datum_t datum = { (unsigned char *) (uintptr_t) pem, (unsigned) strnlen(pem, max) };
        int code = gnutls_x509_privkey_init(ret);

        return code < 0 ? code
                        : gnutls_x509_privkey_import2(*ret, &datum, GNUTLS_X509_FMT_PEM, NULL,
                                                      GNUTLS_PKCS_PLAIN);
}

char *take_gnutls_text(gnutls_datum_t *datum) {
        char *text = strndup((const char *) datum->data, datum->size);

        explicit_bzero(datum->data, datum->size);
        gnutls_free(datum->data);
        return text;
}

char *private_key_format(gnutls_x509_privkey_t key) {
        gnutls_datum_t pem = { 0 };

        return gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN,
                                                 &pem) < 0
                       ? NULL
                       : take_gnutls_text(&pem);
}

unsigned parse_alternative_address(const char *text, unsigned char ret[sizeof(struct in6_addr)]) {
        if (inet_pton(AF_INET, text, ret) == 1)
                return sizeof(struct in_addr);
        return inet_pton(AF_INET6, text, ret) == 1 ? sizeof(struct in6_addr) : 0;
}
