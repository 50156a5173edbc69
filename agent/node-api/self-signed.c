/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/self-signed.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <time.h>

enum {
        DAY_SEC = 24 * 3600,
        VALID_DAYS = 365,
        RENEW_DAYS = 300, /* the rest is for clocks that differ */
};

typedef struct SelfSigned {
        gnutls_x509_privkey_t key;
        gnutls_x509_crt_t certificate;
} SelfSigned;

static void self_signed_done(SelfSigned *pair) {
        if (pair->key)
                gnutls_x509_privkey_deinit(pair->key);
        if (pair->certificate)
                gnutls_x509_crt_deinit(pair->certificate);
}

static int fill_certificate(gnutls_x509_crt_t certificate, const char *host_name, time_t now) {
        unsigned char serial[16];
        int code = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));

        serial[0] &= 0x7f; /* a positive number */
        if (code >= 0)
                code = gnutls_x509_crt_set_serial(certificate, serial, sizeof(serial));
        if (code >= 0)
                code = gnutls_x509_crt_set_version(certificate, 3);
        if (code >= 0)
                code = gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0,
                                                     host_name, (unsigned) strlen(host_name));
        if (code >= 0)
                code = gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_DNSNAME,
                                                            host_name, (unsigned) strlen(host_name),
                                                            GNUTLS_FSAN_SET);
        if (code >= 0)
                code = gnutls_x509_crt_set_key_usage(certificate, GNUTLS_KEY_DIGITAL_SIGNATURE);
        if (code >= 0)
                code = gnutls_x509_crt_set_key_purpose_oid(certificate, GNUTLS_KP_TLS_WWW_SERVER,
                                                           0);
        if (code >= 0)
                code = gnutls_x509_crt_set_activation_time(certificate, now - DAY_SEC);
        if (code >= 0)
                code = gnutls_x509_crt_set_expiration_time(certificate,
                                                           now + (time_t) VALID_DAYS * DAY_SEC);
        return code;
}

static int make_self_signed(SelfSigned *pair, const char *host_name, time_t now) {
        int code = gnutls_x509_privkey_init(&pair->key);

        if (code >= 0)
                code = gnutls_x509_privkey_generate(
                        pair->key, GNUTLS_PK_ECDSA,
                        GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
        if (code >= 0)
                code = gnutls_x509_crt_init(&pair->certificate);
        if (code >= 0)
                code = fill_certificate(pair->certificate, host_name, now);
        if (code >= 0)
                code = gnutls_x509_crt_set_key(pair->certificate, pair->key);
        if (code >= 0)
                code = gnutls_x509_crt_sign2(pair->certificate, pair->certificate, pair->key,
                                             GNUTLS_DIG_SHA256, 0);
        return code;
}

int self_signed_set(gnutls_certificate_credentials_t credentials, const char *host_name,
                    uint64_t *ret_renew_at, Error *reterr) {
        cleanup_with(self_signed_done) SelfSigned pair = { 0 };
        uint64_t now = now_realtime_usec();
        int code = make_self_signed(&pair, host_name, (time_t) (now / USEC_PER_SEC));

        if (code >= 0)
                code = gnutls_certificate_set_x509_key(credentials, &pair.certificate, 1, pair.key);
        if (code < 0)
                return error_setf(reterr, EIO, "cannot make a serving certificate: %s",
                                  gnutls_strerror(code));
        *ret_renew_at = now + (uint64_t) RENEW_DAYS * DAY_SEC * USEC_PER_SEC;
        return 0;
}
