/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/node-authority.h"

#include "agent/kubeclient/private-key.h"
#include "agent/kubeclient/tls-config.h"
#include "common/certificate-time.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"

#include <gnutls/crypto.h>
#include <gnutls/x509.h>

enum {
        DAY_SEC = 24 * 3600,
        AUTHORITY_VALID_DAYS = 3650,
        PEM_MAX = 64 * 1024,
};

/* A key and its certificate. */
typedef struct CertifiedKey {
        gnutls_x509_privkey_t key;
        gnutls_x509_crt_t certificate;
} CertifiedKey;

struct NodeAuthority {
        CertifiedKey pair;
        char *certificate; /* PEM */
};

static void certified_key_done(CertifiedKey *pair) {
        if (pair->key)
                gnutls_x509_privkey_deinit(pair->key);
        if (pair->certificate)
                gnutls_x509_crt_deinit(pair->certificate);
        *pair = (CertifiedKey){ 0 };
}

NodeAuthority *node_authority_free(NodeAuthority *authority) {
        if (!authority)
                return NULL;
        certified_key_done(&authority->pair);
        free(authority->certificate);
        free(authority);
        return NULL;
}

static int fail_authority(int code, const char *what, Error *reterr) {
        return error_setf(reterr, EIO, "%s: %s", what, gnutls_strerror(code));
}

/* ---- making ---- */

static int generate_certified_key(CertifiedKey *pair) {
        int code = private_key_generate(&pair->key);

        return code < 0 ? code : gnutls_x509_crt_init(&pair->certificate);
}

static int set_subject(gnutls_x509_crt_t certificate, const char *name, const char *organization) {
        int code = gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                                 (unsigned) strlen(name));

        if (code < 0 || !organization)
                return code;
        return gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_ORGANIZATION_NAME, 0,
                                             organization, (unsigned) strlen(organization));
}

/* The certificate is valid from a day ago, because clocks differ. If the clock is not set, it is
 * valid at all times. */
static CertificateTimes valid_for_days(uint64_t now_usec, unsigned days) {
        int64_t now = (int64_t) (now_usec / USEC_PER_SEC);

        if (!clock_is_set(now_usec))
                return (CertificateTimes){ 0, CERTIFICATE_NEVER_EXPIRES };
        return (CertificateTimes){ now - DAY_SEC, now + (int64_t) days * DAY_SEC };
}

/* The certificate is valid from 1970, because it may be created while the clock is ahead. */
static CertificateTimes authority_times(uint64_t now_usec) {
        return (CertificateTimes){ 0, valid_for_days(now_usec, AUTHORITY_VALID_DAYS).not_after };
}

static int set_serial_and_times(gnutls_x509_crt_t certificate, const CertificateTimes *times) {
        unsigned char serial[16];
        int code = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));

        if (code < 0)
                return code;
        serial[0] &= 0x7f; /* the number must be positive */
        code = gnutls_x509_crt_set_serial(certificate, serial, sizeof(serial));
        return code < 0 ? code : certificate_set_times(certificate, times);
}

static int set_version_and_times(gnutls_x509_crt_t certificate, const CertificateTimes *times) {
        unsigned char id[32];
        size_t id_size = sizeof(id);
        int code = set_serial_and_times(certificate, times);

        if (code < 0)
                return code;
        code = gnutls_x509_crt_set_version(certificate, 3);
        if (code < 0)
                return code;
        code = gnutls_x509_crt_get_key_id(certificate, GNUTLS_KEYID_USE_SHA1, id, &id_size);
        if (code < 0)
                return code;
        return gnutls_x509_crt_set_subject_key_id(certificate, id, id_size);
}

static int sign_certified_key(const CertifiedKey *pair) {
        return gnutls_x509_crt_sign2(pair->certificate, pair->certificate, pair->key,
                                     GNUTLS_DIG_SHA256, 0);
}

static int sign_authority(CertifiedKey *pair, const char *node_name, uint64_t now_usec) {
        const CertificateTimes times = authority_times(now_usec);
        int code = gnutls_x509_crt_set_key(pair->certificate, pair->key);

        if (code < 0)
                return code;
        code = set_subject(pair->certificate, node_name, "mainstay");
        if (code < 0)
                return code;
        code = set_version_and_times(pair->certificate, &times);
        if (code < 0)
                return code;
        code = gnutls_x509_crt_set_basic_constraints(pair->certificate, 1, 0);
        if (code < 0)
                return code;
        code = gnutls_x509_crt_set_key_usage(pair->certificate, GNUTLS_KEY_KEY_CERT_SIGN);
        if (code < 0)
                return code;
        return sign_certified_key(pair);
}

/* The new certificate has the same key and name, so certificates that the authority has issued
 * remain valid, and so do kubeconfigs with the earlier certificate if that becomes valid when a
 * wrong clock is corrected. */
static int renew_authority(CertifiedKey *pair, uint64_t now_usec) {
        CertifiedKey renewed = { .key = pair->key };
        char name[256];
        size_t size = sizeof(name);
        int code = gnutls_x509_crt_get_dn_by_oid(pair->certificate, GNUTLS_OID_X520_COMMON_NAME, 0,
                                                 0, name, &size);

        if (code < 0)
                return code;
        /* GnuTLS cannot replace a time before 2050 with a later one, which has another type. */
        code = gnutls_x509_crt_init(&renewed.certificate);
        if (code < 0)
                return code;
        code = sign_authority(&renewed, name, now_usec);
        if (code < 0) {
                gnutls_x509_crt_deinit(renewed.certificate);
                return code;
        }
        gnutls_x509_crt_deinit(pair->certificate);
        pair->certificate = renewed.certificate;
        return 0;
}

static int add_alternative_names(gnutls_x509_crt_t certificate, const NodeCertificateSpec *spec) {
        unsigned char address[sizeof(struct in6_addr)];
        int code = 0;

        for (const char *const *name = spec->dns_names; *name && code >= 0; name++)
                code = gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_DNSNAME, *name,
                                                            (unsigned) strlen(*name),
                                                            GNUTLS_FSAN_APPEND);
        for (const char *const *text = spec->addresses; text && *text && code >= 0; text++) {
                unsigned length = parse_alternative_address(*text, address);

                if (length > 0)
                        code = gnutls_x509_crt_set_subject_alt_name(certificate,
                                                                    GNUTLS_SAN_IPADDRESS, address,
                                                                    length, GNUTLS_FSAN_APPEND);
        }
        return code;
}

static int sign_certificate(const CertifiedKey *issuer, CertifiedKey *pair,
                            const NodeCertificateSpec *spec, uint64_t now_usec) {
        const CertificateTimes times = valid_for_days(now_usec, spec->valid_days);
        int code = gnutls_x509_crt_set_key(pair->certificate, pair->key);

        if (code < 0)
                return code;
        code = set_subject(pair->certificate, spec->common_name, spec->organization);
        if (code < 0)
                return code;
        code = set_version_and_times(pair->certificate, &times);
        if (code < 0)
                return code;
        code = gnutls_x509_crt_set_basic_constraints(pair->certificate, 0, -1);
        if (code < 0)
                return code;
        code = gnutls_x509_crt_set_key_usage(pair->certificate, GNUTLS_KEY_DIGITAL_SIGNATURE);
        if (code < 0)
                return code;
        code = gnutls_x509_crt_set_key_purpose_oid(
                pair->certificate,
                spec->dns_names ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT, 0);
        if (code < 0)
                return code;
        if (spec->dns_names) {
                code = add_alternative_names(pair->certificate, spec);
                if (code < 0)
                        return code;
        }
        return gnutls_x509_crt_sign2(pair->certificate, issuer->certificate, issuer->key,
                                     GNUTLS_DIG_SHA256, 0);
}

/* ---- PEM ---- */

static char *format_pem_certificate(gnutls_x509_crt_t certificate) {
        gnutls_datum_t pem = { 0 };

        return gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &pem) < 0
                       ? NULL
                       : take_gnutls_text(&pem);
}

/* The text's first certificate. */
static int import_certificate(const char *text, gnutls_x509_crt_t *ret) {
        gnutls_datum_t pem = { (unsigned char *) (uintptr_t) text,
                               (unsigned) strnlen(text, PEM_MAX) };
        int code = gnutls_x509_crt_init(ret);

        return code < 0 ? code : gnutls_x509_crt_import(*ret, &pem, GNUTLS_X509_FMT_PEM);
}

static int import_certified_key(CertifiedKey *pair, const char *text) {
        int code = private_key_import(text, PEM_MAX, &pair->key);

        return code < 0 ? code : import_certificate(text, &pair->certificate);
}

/* ---- the authority ---- */

static int finish_authority(NodeAuthority *authority, NodeAuthority **ret) {
        authority->certificate = format_pem_certificate(authority->pair.certificate);
        if (!authority->certificate)
                return -ENOMEM;
        *ret = authority;
        return 0;
}

int node_authority_new(const char *node_name, uint64_t now_usec, NodeAuthority **ret,
                       Error *reterr) {
        cleanup_with(node_authority_freep) NodeAuthority *authority = calloc(1, sizeof(*authority));
        int code, r;

        if (!authority)
                return -ENOMEM;
        code = generate_certified_key(&authority->pair);
        if (code >= 0)
                code = sign_authority(&authority->pair, node_name, now_usec);
        if (code < 0)
                return fail_authority(code, "cannot make a certificate authority", reterr);
        r = finish_authority(authority, ret);
        if (r < 0)
                return r;
        authority = NULL;
        return 0;
}

int node_authority_parse(const char *pem, uint64_t now_usec, NodeAuthority **ret, Error *reterr) {
        cleanup_with(node_authority_freep) NodeAuthority *authority = calloc(1, sizeof(*authority));
        CertificateTimes times;
        bool has_expired;
        int code, r;

        if (!authority)
                return -ENOMEM;
        code = import_certified_key(&authority->pair, pem);
        if (code < 0)
                return error_setf(reterr, EINVAL, "it is not a certificate and its key: %s",
                                  gnutls_strerror(code));
        has_expired = certificate_read_times(authority->pair.certificate, &times) < 0 ||
                      times.not_after < (int64_t) (now_usec / USEC_PER_SEC);
        code = has_expired ? renew_authority(&authority->pair, now_usec) : 0;
        if (code < 0)
                return fail_authority(code, "cannot renew the certificate", reterr);
        r = finish_authority(authority, ret);
        if (r < 0)
                return r;
        authority = NULL;
        return has_expired;
}

char *node_authority_format(const NodeAuthority *authority) {
        char *key = private_key_format(authority->pair.key), *text;

        text = key ? text_format("%s%s", authority->certificate, key) : NULL;
        secret_free(key);
        return text;
}

const char *node_authority_certificate(const NodeAuthority *authority) {
        return authority->certificate;
}

/* 'issuer' is NULL for a self-signed certificate. */
static int issue_certificate(const CertifiedKey *issuer, const NodeCertificateSpec *spec,
                             uint64_t now_usec, char **ret_certificate, char **ret_key,
                             Error *reterr) {
        cleanup_with(certified_key_done) CertifiedKey pair = { 0 };
        int code = generate_certified_key(&pair);
        char *certificate, *key;

        if (code >= 0)
                code = sign_certificate(issuer ? issuer : &pair, &pair, spec, now_usec);
        if (code < 0)
                return fail_authority(code, "cannot issue a certificate", reterr);
        certificate = format_pem_certificate(pair.certificate);
        key = private_key_format(pair.key);
        if (!certificate || !key) {
                free(certificate);
                secret_free(key);
                return -ENOMEM;
        }
        *ret_certificate = certificate;
        *ret_key = key;
        return 0;
}

int node_authority_issue(const NodeAuthority *authority, const NodeCertificateSpec *spec,
                         uint64_t now_usec, char **ret_certificate, char **ret_key, Error *reterr) {
        return issue_certificate(&authority->pair, spec, now_usec, ret_certificate, ret_key,
                                 reterr);
}

/* ---- without an authority ---- */

int self_signed_issue(const NodeCertificateSpec *spec, uint64_t now_usec, char **ret_certificate,
                      char **ret_key, Error *reterr) {
        return issue_certificate(NULL, spec, now_usec, ret_certificate, ret_key, reterr);
}

bool is_self_signed(const char *certificate) {
        cleanup_with(certified_key_done) CertifiedKey pair = { 0 };

        return import_certificate(certificate, &pair.certificate) >= 0 &&
               gnutls_x509_crt_check_issuer(pair.certificate, pair.certificate);
}
