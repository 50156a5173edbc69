/* SPDX-License-Identifier: Apache-2.0 */
#include "common/ed25519.h"

#include "common/base64.h"
#include "common/cleanup.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

enum {
        SPKI_SIZE = 44,
        MINISIGN_KEY_SIZE = 42,
        MINISIGN_SIGNATURE_SIZE = 74,
        MINISIGN_HEAD_SIZE = 10, /* the algorithm and the number of the key */
        LINE_LENGTH_MAX = 256
};

/* The bytes before the key: a sequence with the algorithm 1.3.101.112, and a bit string. */
static const uint8_t spki_head[] = { 0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
                                     0x2b, 0x65, 0x70, 0x03, 0x21, 0x00 };

static inline void ed25519_private_donep(gnutls_privkey_t *key) {
        gnutls_privkey_deinit(*key);
}

static bool starts_with_minisign(const char *data) {
        return data[0] == 'E' && data[1] == 'd';
}

int ed25519_key_parse(const char *text, uint8_t ret[ED25519_KEY_SIZE]) {
        cleanup_free char *data = NULL;
        size_t length, head;
        int r = base64_decode(text, &data, &length);

        if (r < 0)
                return r;
        head = length - MIN(length, (size_t) ED25519_KEY_SIZE);
        if (length != ED25519_KEY_SIZE &&
            !(length == SPKI_SIZE && memcmp(data, spki_head, sizeof(spki_head)) == 0) &&
            !(length == MINISIGN_KEY_SIZE && starts_with_minisign(data)))
                return -EINVAL;
        memcpy(ret, data + head, ED25519_KEY_SIZE);
        return 0;
}

/* Parses one line. 1: it is a signature. */
static size_t parse_signature_line(const char *line, size_t n,
                                   uint8_t ret[ED25519_SIGNATURE_SIZE]) {
        cleanup_free char *text = strndup(line, n), *data = NULL;
        size_t length;

        if (!text || base64_decode(text, &data, &length) < 0)
                return 0;
        if (length == MINISIGN_SIGNATURE_SIZE && starts_with_minisign(data))
                memcpy(ret, data + MINISIGN_HEAD_SIZE, ED25519_SIGNATURE_SIZE);
        else if (length == ED25519_SIGNATURE_SIZE)
                memcpy(ret, data, ED25519_SIGNATURE_SIZE);
        else
                return 0;
        return 1;
}

size_t ed25519_signatures_parse(const char *data, size_t length,
                                uint8_t ret[][ED25519_SIGNATURE_SIZE]) {
        const char *end = data + length;
        size_t n = 0;

        if (length == ED25519_SIGNATURE_SIZE) {
                memcpy(ret[0], data, length);
                return 1;
        }
        while (data < end && n < ED25519_SIGNATURES_MAX) {
                const char *line_end = memchr(data, '\n', (size_t) (end - data));
                size_t n_line = (size_t) ((line_end ? line_end : end) - data);

                if (n_line > 0 && n_line <= LINE_LENGTH_MAX)
                        n += parse_signature_line(data, n_line, ret[n]);
                data += n_line + 1;
        }
        return n;
}

/* GnuTLS declares data that it only reads as not const. */
static gnutls_datum_t datum_of(const void *data, size_t length) {
        return (gnutls_datum_t){ (unsigned char *) (uintptr_t) data, (unsigned) length };
}

bool ed25519_verify(const uint8_t key[ED25519_KEY_SIZE], const void *data, size_t length,
                    const uint8_t signature[ED25519_SIGNATURE_SIZE]) {
        cleanup_with(public_key_freep) PublicKey *public = NULL;

        return public_key_from_ed25519(key, &public) >= 0 &&
               public_key_verify(public, data, length, signature, ED25519_SIGNATURE_SIZE);
}

static int load_private_key(const char *pem, gnutls_privkey_t *ret, Error *reterr) {
        const gnutls_datum_t text = datum_of(pem, strlen(pem));

        if (gnutls_privkey_init(ret) < 0)
                return -ENOMEM;
        if (gnutls_privkey_import_x509_raw(*ret, &text, GNUTLS_X509_FMT_PEM, NULL, 0) < 0)
                return error_setf(reterr, EINVAL, "is not a private key in PEM without a password");
        if (gnutls_privkey_get_pk_algorithm(*ret, NULL) != GNUTLS_PK_EDDSA_ED25519)
                return error_setf(reterr, EINVAL, "is not a key of Ed25519");
        return 0;
}

static int copy_public_key(gnutls_privkey_t private, uint8_t ret[ED25519_KEY_SIZE]) {
        gnutls_datum_t x = { 0 };
        int r = gnutls_privkey_export_ecc_raw2(private, NULL, &x, NULL, NULL, 0);

        if (r >= 0 && x.size == ED25519_KEY_SIZE)
                memcpy(ret, x.data, ED25519_KEY_SIZE);
        else
                r = -EINVAL;
        gnutls_free(x.data);
        return r < 0 ? -EINVAL : 0;
}

int ed25519_sign(const char *pem, const void *data, size_t length,
                 uint8_t ret[ED25519_SIGNATURE_SIZE], uint8_t ret_key[ED25519_KEY_SIZE],
                 Error *reterr) {
        cleanup_with(ed25519_private_donep) gnutls_privkey_t private = NULL;
        const gnutls_datum_t bytes = datum_of(data, length);
        gnutls_datum_t signature = { 0 };
        int r = load_private_key(pem, &private, reterr);

        if (r < 0)
                return r;
        r = copy_public_key(private, ret_key);
        if (r < 0)
                return r;
        if (gnutls_privkey_sign_data2(private, GNUTLS_SIGN_EDDSA_ED25519, 0, &bytes, &signature) <
                    0 ||
            signature.size != ED25519_SIGNATURE_SIZE)
                r = error_setf(reterr, EIO, "cannot sign");
        else
                memcpy(ret, signature.data, ED25519_SIGNATURE_SIZE);
        gnutls_free(signature.data);
        return r;
}
