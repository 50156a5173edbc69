/* SPDX-License-Identifier: Apache-2.0 */
#include "common/public-key.h"

#include "common/cleanup.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <limits.h>
#include <stdint.h>

struct PublicKey {
        gnutls_pubkey_t key;
        gnutls_sign_algorithm_t algorithm;
};

/* GnuTLS declares data that it only reads as not const. */
static gnutls_datum_t key_datum(const void *data, size_t length) {
        return (gnutls_datum_t){ (unsigned char *) (uintptr_t) data, (unsigned) length };
}

static bool is_key_on_p256(gnutls_pubkey_t key) {
        gnutls_ecc_curve_t curve = GNUTLS_ECC_CURVE_INVALID;

        return gnutls_pubkey_export_ecc_raw2(key, &curve, NULL, NULL, 0) >= 0 &&
               curve == GNUTLS_ECC_CURVE_SECP256R1;
}

/* GNUTLS_SIGN_UNKNOWN: the key type is not supported. */
static gnutls_sign_algorithm_t find_key_algorithm(gnutls_pubkey_t key) {
        int kind = gnutls_pubkey_get_pk_algorithm(key, NULL);

        if (kind == GNUTLS_PK_EDDSA_ED25519)
                return GNUTLS_SIGN_EDDSA_ED25519;
        return kind == GNUTLS_PK_ECDSA && is_key_on_p256(key) ? GNUTLS_SIGN_ECDSA_SHA256
                                                              : GNUTLS_SIGN_UNKNOWN;
}

int public_key_from_ed25519(const void *bytes, PublicKey **ret) {
        cleanup_with(public_key_freep) PublicKey *key = calloc(1, sizeof(*key));
        const gnutls_datum_t x = key_datum(bytes, ED25519_KEY_SIZE);

        if (!key || gnutls_pubkey_init(&key->key) < 0)
                return -ENOMEM;
        if (gnutls_pubkey_import_ecc_raw(key->key, GNUTLS_ECC_CURVE_ED25519, &x, NULL) < 0)
                return -EINVAL;
        key->algorithm = GNUTLS_SIGN_EDDSA_ED25519;
        *ret = TAKE_PTR(key);
        return 0;
}

int public_key_parse(const char *pem, PublicKey **ret, Error *reterr) {
        cleanup_with(public_key_freep) PublicKey *key = calloc(1, sizeof(*key));
        const gnutls_datum_t text = key_datum(pem, strlen(pem));

        if (!key || gnutls_pubkey_init(&key->key) < 0)
                return -ENOMEM;
        if (gnutls_pubkey_import(key->key, &text, GNUTLS_X509_FMT_PEM) < 0)
                return error_setf(reterr, EINVAL, "is not a public key in PEM");
        key->algorithm = find_key_algorithm(key->key);
        if (key->algorithm == GNUTLS_SIGN_UNKNOWN)
                return error_setf(reterr, EINVAL, "is neither a key of ECDSA P-256 nor of Ed25519");
        *ret = TAKE_PTR(key);
        return 0;
}

bool public_key_verify(const PublicKey *key, const void *data, size_t length, const void *signature,
                       size_t signature_length) {
        const gnutls_datum_t bytes = key_datum(data, length);
        const gnutls_datum_t signed_by = key_datum(signature, signature_length);

        return length <= INT_MAX && signature_length <= INT_MAX &&
               gnutls_pubkey_verify_data2(key->key, key->algorithm, 0, &bytes, &signed_by) >= 0;
}

PublicKey *public_key_free(PublicKey *key) {
        if (!key)
                return NULL;
        gnutls_pubkey_deinit(key->key);
        free(key);
        return NULL;
}
