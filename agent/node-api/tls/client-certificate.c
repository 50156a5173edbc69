/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/tls/client-certificate.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/strv.h"
#include "common/text.h"
#include "common/utf8.h"

#include <stdio.h>

enum {
        CHAIN_MAX = 8,        /* number of certificates in a client's chain */
        ATTRIBUTES_MAX = 512, /* limit for the subject of one */
};

typedef struct ClientChain {
        gnutls_x509_crt_t items[CHAIN_MAX];
        unsigned n;
} ClientChain;

static void client_chain_done(ClientChain *chain) {
        for (unsigned i = 0; i < chain->n; i++)
                gnutls_x509_crt_deinit(chain->items[i]);
}

static int import_client_chain(const gnutls_datum_t *certificates, unsigned n, ClientChain *chain,
                               Error *reterr) {
        if (n > CHAIN_MAX)
                return error_setf(reterr, EACCES, "the client certificate has more than %d issuers",
                                  CHAIN_MAX - 1);
        for (; chain->n < n; chain->n++) {
                gnutls_x509_crt_t certificate;
                int code;

                if (gnutls_x509_crt_init(&certificate) < 0)
                        return -ENOMEM;
                code = gnutls_x509_crt_import(certificate, &certificates[chain->n],
                                              GNUTLS_X509_FMT_DER);
                if (code < 0) {
                        gnutls_x509_crt_deinit(certificate);
                        return error_setf(reterr, EACCES, "the client certificate: %s",
                                          gnutls_strerror(code));
                }
                chain->items[chain->n] = certificate;
        }
        return 0;
}

static int verify_client_chain(gnutls_x509_trust_list_t authorities, ClientChain *chain,
                               Error *reterr) {
        static char purpose[] = GNUTLS_KP_TLS_WWW_CLIENT;
        gnutls_typed_vdata_st data = { .type = GNUTLS_DT_KEY_PURPOSE_OID,
                                       .data = (unsigned char *) purpose };
        unsigned status;
        int code = gnutls_x509_trust_list_verify_crt2(authorities, chain->items, chain->n, &data, 1,
                                                      0, &status, NULL);
        gnutls_datum_t text = { 0 };

        if (code >= 0 && status == 0)
                return 0;
        if (code >= 0)
                (void) gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text,
                                                                    0);
        (void) error_setf(reterr, EACCES, "the client certificate: %s",
                          code < 0    ? gnutls_strerror(code)
                          : text.data ? (const char *) text.data
                                      : "it is not valid");
        gnutls_free(text.data);
        return -EACCES;
}

/* ---- the subject of a client ---- */

/* Converts characters of one or two bytes each. NULL: one is NUL or a surrogate, or out of memory.
 */
static char *decode_wide_text(const gnutls_datum_t *value, unsigned width) {
        char *text = calloc(value->size / width + 1, 3), *end = text;

        for (unsigned i = 0; text && i + width <= value->size; i += width) {
                unsigned c = width == 1 ? value->data[i]
                                        : (unsigned) value->data[i] << 8 | value->data[i + 1];

                if (c == 0 || (c >= 0xd800 && c < 0xe000)) {
                        free(text);
                        return NULL;
                }
                if (c >= 0x800)
                        *end++ = (char) (0xe0 | c >> 12);
                if (c >= 0x80)
                        *end++ = (char) (c >= 0x800 ? 0x80 | (c >> 6 & 0x3f) : 0xc0 | c >> 6);
                *end++ = (char) (c >= 0x80 ? 0x80 | (c & 0x3f) : c);
        }
        return text;
}

/* Decodes string types like Go, so that the names equal those in the API server: T61String is
 * Latin-1. NULL: not a text, contains a NUL, or out of memory. */
static char *decode_subject_text(const gnutls_x509_ava_st *attribute) {
        enum {
                UTF8_STRING = 12,
                NUMERIC_STRING = 18,
                PRINTABLE_STRING = 19,
                T61_STRING = 20,
                IA5_STRING = 22,
                BMP_STRING = 30,
        };
        const gnutls_datum_t *value = &attribute->value;

        switch (attribute->value_tag) {
        case UTF8_STRING:
        case NUMERIC_STRING:
        case PRINTABLE_STRING:
        case IA5_STRING:
                return utf8_is_text((const char *) value->data, value->size)
                               ? strndup((const char *) value->data, value->size)
                               : NULL;
        case T61_STRING:
                return decode_wide_text(value, 1);
        case BMP_STRING:
                return value->size % 2 == 0 ? decode_wide_text(value, 2) : NULL;
        default:
                return NULL;
        }
}

static bool has_attribute_type(const gnutls_x509_ava_st *attribute, const char *oid) {
        return attribute->oid.size >= strlen(oid) && streq((const char *) attribute->oid.data, oid);
}

/* As in Go, the last of several common names is used. */
static int set_subject_name(ApiUser *user, char *text_consume, Error *reterr) {
        free(user->name);
        user->name = text_consume;
        return 0;
}

static int set_subject_uid(ApiUser *user, char *text_consume, Error *reterr) {
        bool is_good = !user->uid && text_consume[0];

        free(user->uid);
        user->uid = text_consume;
        return is_good ? 0
                       : error_setf(reterr, EACCES,
                                    "the client certificate: the UID of its subject is %s",
                                    text_consume[0] ? "there twice" : "empty");
}

static int add_subject_group(ApiUser *user, char *text_consume, Error *reterr) {
        int r = strv_append(&user->groups, text_consume);

        free(text_consume);
        return r;
}

static const struct {
        const char *oid;
        const char *what;
        int (*set)(ApiUser *user, char *text_consume, Error *reterr);
} subject_attributes[] = {
        { GNUTLS_OID_X520_COMMON_NAME, "common name", set_subject_name },
        { GNUTLS_OID_X520_ORGANIZATION_NAME, "organization", add_subject_group },
        { "1.3.6.1.4.1.57683.2", "UID", set_subject_uid }, /* Kubernetes' own */
};

static int take_subject_attribute(const gnutls_x509_ava_st *attribute, ApiUser *user,
                                  Error *reterr) {
        for (size_t i = 0; i < N_ELEMENTS(subject_attributes); i++) {
                char *text;

                if (!has_attribute_type(attribute, subject_attributes[i].oid))
                        continue;
                text = decode_subject_text(attribute);
                return text ? subject_attributes[i].set(user, text, reterr)
                            : error_setf(reterr, EACCES,
                                         "the client certificate: cannot read the %s of its "
                                         "subject",
                                         subject_attributes[i].what);
        }
        return 0;
}

/* Each part of a subject has at least one attribute. */
static int next_subject_attribute(gnutls_x509_dn_t subject, int *part, int *i,
                                  gnutls_x509_ava_st *ret) {
        int code = gnutls_x509_dn_get_rdn_ava(subject, *part, (*i)++, ret);

        if (code != GNUTLS_E_ASN1_ELEMENT_NOT_FOUND || *i == 1)
                return code;
        *i = 1;
        return gnutls_x509_dn_get_rdn_ava(subject, ++*part, 0, ret);
}

/* A name or group that cannot be read invalidates the certificate, because without it the user
 * differs. */
static int read_client_subject(gnutls_x509_crt_t certificate, ApiUser *user, Error *reterr) {
        gnutls_x509_dn_t subject;
        gnutls_x509_ava_st attribute;
        int part = 0, i = 0, code = gnutls_x509_crt_get_subject(certificate, &subject);

        for (unsigned n = 0; code >= 0 && n < ATTRIBUTES_MAX; n++) {
                int r;

                code = next_subject_attribute(subject, &part, &i, &attribute);
                r = code >= 0 ? take_subject_attribute(&attribute, user, reterr) : 0;
                if (r < 0)
                        return r;
        }
        if (code != GNUTLS_E_ASN1_ELEMENT_NOT_FOUND)
                return error_setf(reterr, EACCES, "the client certificate's subject: %s",
                                  code < 0 ? gnutls_strerror(code) : "it is too long");
        if (!user->name || !user->name[0])
                return error_setf(reterr, EACCES, "the client certificate has no common name");
        return 0;
}

/* The audit log of an API server distinguishes the certificates of one user by this ID. */
static int set_credential_id(const gnutls_datum_t *der, ApiUser *user) {
        char hash[SHA256_HEX_SIZE];

        sha256_hex(der->data, der->size, hash);
        user->extra = text_format(
                "{\"authentication.kubernetes.io/credential-id\":[\"X509SHA256=%s\"]}", hash);
        return user->extra ? 0 : -ENOMEM;
}

/* The time until which all certificates of the chain are valid. */
static uint64_t chain_expiration_usec(const ClientChain *chain) {
        uint64_t first = UINT64_MAX;

        for (unsigned i = 0; i < chain->n; i++) {
                time_t end = gnutls_x509_crt_get_expiration_time(chain->items[i]);

                first = MIN(first, end < 0 ? 0 : (uint64_t) end * USEC_PER_SEC);
        }
        return first;
}

int client_certificate_authenticate(gnutls_x509_trust_list_t authorities,
                                    const gnutls_datum_t *certificates, unsigned n, ApiUser *ret,
                                    uint64_t *ret_expires, Error *reterr) {
        cleanup_with(client_chain_done) ClientChain chain = { 0 };
        cleanup_with(api_user_done) ApiUser user = { 0 };
        int r = import_client_chain(certificates, n, &chain, reterr);

        if (r < 0)
                return r;
        *ret_expires = chain_expiration_usec(&chain);
        r = verify_client_chain(authorities, &chain, reterr);
        if (r < 0)
                return r;
        r = read_client_subject(chain.items[0], &user, reterr);
        if (r < 0)
                return r;
        r = set_credential_id(&certificates[0], &user);
        if (r < 0)
                return r;
        *ret = user;
        user = (ApiUser){ 0 };
        return 0;
}
