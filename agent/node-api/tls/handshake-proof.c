/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/tls/handshake-proof.h"

#include "agent/node-api/tls/handshake-transcript.h"
#include "common/cleanup.h"
#include "common/tls-limits.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/x509.h>

enum {
        RANDOM_OFFSET = 2, /* offset in a ServerHello: after the version */
        MESSAGES_MAX = 12,
        N_ORDER = 9, /* of both */
        CONTEXT_PADDING = 64,
};

typedef struct Handshake {
        HandshakeMessage messages[MESSAGES_MAX];
        size_t n;
} Handshake;

/* RFC 8446 4, RFC 5246 7.4: the possible orders of messages in a handshake with a client
 * certificate. The client's messages are the first, the last three or the last two. */
static const unsigned char tls13_order[N_ORDER] = {
        GNUTLS_HANDSHAKE_CLIENT_HELLO,
        GNUTLS_HANDSHAKE_SERVER_HELLO,
        GNUTLS_HANDSHAKE_ENCRYPTED_EXTENSIONS,
        GNUTLS_HANDSHAKE_CERTIFICATE_REQUEST,
        GNUTLS_HANDSHAKE_CERTIFICATE_PKT,
        GNUTLS_HANDSHAKE_CERTIFICATE_VERIFY,
        GNUTLS_HANDSHAKE_FINISHED,
        GNUTLS_HANDSHAKE_CERTIFICATE_PKT,
        GNUTLS_HANDSHAKE_CERTIFICATE_VERIFY,
};
static const unsigned char tls12_order[N_ORDER] = {
        GNUTLS_HANDSHAKE_CLIENT_HELLO,        GNUTLS_HANDSHAKE_SERVER_HELLO,
        GNUTLS_HANDSHAKE_CERTIFICATE_PKT,     GNUTLS_HANDSHAKE_SERVER_KEY_EXCHANGE,
        GNUTLS_HANDSHAKE_CERTIFICATE_REQUEST, GNUTLS_HANDSHAKE_SERVER_HELLO_DONE,
        GNUTLS_HANDSHAKE_CERTIFICATE_PKT,     GNUTLS_HANDSHAKE_CLIENT_KEY_EXCHANGE,
        GNUTLS_HANDSHAKE_CERTIFICATE_VERIFY,
};

static int split_handshake(const void *transcript, size_t size, Handshake *ret) {
        size_t position = 0;

        while (position < size) {
                if (ret->n == MESSAGES_MAX ||
                    !handshake_next_message(transcript, size, &position, &ret->messages[ret->n]))
                        return -EBADMSG;
                ret->n++;
        }
        return 0;
}

/* A HelloRetryRequest and the second ClientHello are left out. */
static int check_order(const Handshake *handshake, bool is_tls13, size_t *ret_skipped) {
        const unsigned char *order = is_tls13 ? tls13_order : tls12_order;
        size_t skipped =
                is_tls13 && handshake->n > 2 && is_hello_retry(&handshake->messages[1]) ? 2 : 0;

        if (handshake->n != N_ORDER + skipped)
                return -EBADMSG;
        if (skipped && handshake->messages[0].type != GNUTLS_HANDSHAKE_CLIENT_HELLO)
                return -EBADMSG;
        for (size_t i = 0; i < N_ORDER; i++)
                if (handshake->messages[i + skipped].type != order[i])
                        return -EBADMSG;
        *ret_skipped = skipped;
        return 0;
}

/* ---- certificates ---- */

typedef struct Bytes {
        const unsigned char *at;
        size_t left;
} Bytes;

/* A part preceded by its length, which has 'width' bytes. */
static bool take_part(Bytes *bytes, unsigned width, Bytes *ret) {
        size_t length = 0;

        if (bytes->left < width)
                return false;
        for (unsigned i = 0; i < width; i++)
                length = length << 8 | bytes->at[i];
        if (length > bytes->left - width)
                return false;
        *ret = (Bytes){ bytes->at + width, length };
        bytes->at += width + length;
        bytes->left -= width + length;
        return true;
}

static int read_chain(const HandshakeMessage *message, bool is_tls13, HandshakeProof *ret) {
        Bytes bytes = { message->body, message->length }, list, certificate, ignored;

        if (is_tls13 && !take_part(&bytes, 1, &ignored))
                return -EBADMSG;
        if (!take_part(&bytes, 3, &list) || bytes.left > 0)
                return -EBADMSG;
        while (list.left > 0) {
                if (ret->n == PROOF_CHAIN_MAX || !take_part(&list, 3, &certificate) ||
                    (is_tls13 && !take_part(&list, 2, &ignored)))
                        return -EBADMSG;
                ret->chain[ret->n++] =
                        (gnutls_datum_t){ (unsigned char *) (uintptr_t) certificate.at,
                                          (unsigned) certificate.left };
        }
        return ret->n > 0 ? 0 : -EBADMSG;
}

static int import_public_key(const gnutls_datum_t *der, gnutls_pubkey_t key) {
        gnutls_x509_crt_t certificate;
        int code = gnutls_x509_crt_init(&certificate);

        if (code < 0)
                return code;
        code = gnutls_x509_crt_import(certificate, der, GNUTLS_X509_FMT_DER);
        if (code >= 0)
                code = gnutls_pubkey_import_x509(key, certificate, 0);
        gnutls_x509_crt_deinit(certificate);
        return code;
}

/* ---- the signature ---- */

/* SignatureScheme of RFC 8446. */
static const struct {
        unsigned scheme;
        gnutls_sign_algorithm_t tls13, tls12; /* GNUTLS_SIGN_UNKNOWN: not supported */
} schemes[] = {
        { 0x0401, GNUTLS_SIGN_UNKNOWN, GNUTLS_SIGN_RSA_SHA256 },
        { 0x0501, GNUTLS_SIGN_UNKNOWN, GNUTLS_SIGN_RSA_SHA384 },
        { 0x0601, GNUTLS_SIGN_UNKNOWN, GNUTLS_SIGN_RSA_SHA512 },
        { 0x0403, GNUTLS_SIGN_ECDSA_SECP256R1_SHA256, GNUTLS_SIGN_ECDSA_SHA256 },
        { 0x0503, GNUTLS_SIGN_ECDSA_SECP384R1_SHA384, GNUTLS_SIGN_ECDSA_SHA384 },
        { 0x0603, GNUTLS_SIGN_ECDSA_SECP521R1_SHA512, GNUTLS_SIGN_ECDSA_SHA512 },
        { 0x0804, GNUTLS_SIGN_RSA_PSS_RSAE_SHA256, GNUTLS_SIGN_RSA_PSS_RSAE_SHA256 },
        { 0x0805, GNUTLS_SIGN_RSA_PSS_RSAE_SHA384, GNUTLS_SIGN_RSA_PSS_RSAE_SHA384 },
        { 0x0806, GNUTLS_SIGN_RSA_PSS_RSAE_SHA512, GNUTLS_SIGN_RSA_PSS_RSAE_SHA512 },
        { 0x0807, GNUTLS_SIGN_EDDSA_ED25519, GNUTLS_SIGN_EDDSA_ED25519 },
        { 0x0808, GNUTLS_SIGN_EDDSA_ED448, GNUTLS_SIGN_EDDSA_ED448 },
        { 0x0809, GNUTLS_SIGN_RSA_PSS_SHA256, GNUTLS_SIGN_RSA_PSS_SHA256 },
        { 0x080a, GNUTLS_SIGN_RSA_PSS_SHA384, GNUTLS_SIGN_RSA_PSS_SHA384 },
        { 0x080b, GNUTLS_SIGN_RSA_PSS_SHA512, GNUTLS_SIGN_RSA_PSS_SHA512 },
};

static gnutls_sign_algorithm_t find_algorithm(unsigned scheme, bool is_tls13) {
        for (size_t i = 0; i < N_ELEMENTS(schemes); i++)
                if (schemes[i].scheme == scheme)
                        return is_tls13 ? schemes[i].tls13 : schemes[i].tls12;
        return GNUTLS_SIGN_UNKNOWN;
}

/* The text that a client signs in TLS 1.3, based on the transcript hash. Returns the length, or
 * -EBADMSG. */
static int make_signed_content(gnutls_digest_algorithm_t hash, const void *transcript, size_t size,
                               unsigned char *ret) {
        static const char context[] = "TLS 1.3, client CertificateVerify"; /* including its NUL */
        int n;

        if (hash != GNUTLS_DIG_SHA256 && hash != GNUTLS_DIG_SHA384)
                return -EBADMSG;
        memset(ret, ' ', CONTEXT_PADDING);
        memcpy(ret + CONTEXT_PADDING, context, sizeof(context));
        n = handshake_hash(transcript, size, hash, ret + CONTEXT_PADDING + sizeof(context));
        return n < 0 ? n : CONTEXT_PADDING + (int) sizeof(context) + n;
}

static int verify_signature(gnutls_pubkey_t key, const SignerProof *kind, const void *transcript,
                            const HandshakeMessage *last) {
        Bytes bytes = { last->body, last->length }, signature;
        unsigned char content[256];
        gnutls_datum_t data = { (unsigned char *) (uintptr_t) transcript, (unsigned) last->offset };
        gnutls_datum_t signed_by;
        gnutls_sign_algorithm_t algorithm;

        if (bytes.left < 2)
                return -EBADMSG;
        algorithm = find_algorithm((unsigned) bytes.at[0] << 8 | bytes.at[1], kind->is_tls13);
        bytes = (Bytes){ bytes.at + 2, bytes.left - 2 };
        if (algorithm == GNUTLS_SIGN_UNKNOWN || !take_part(&bytes, 2, &signature) || bytes.left > 0)
                return -EBADMSG;
        if (kind->is_tls13) {
                int n = make_signed_content((gnutls_digest_algorithm_t) kind->hash, transcript,
                                            last->offset, content);

                if (n < 0)
                        return n;
                data = (gnutls_datum_t){ content, (unsigned) n };
        }
        signed_by = (gnutls_datum_t){ (unsigned char *) (uintptr_t) signature.at,
                                      (unsigned) signature.left };
        return gnutls_pubkey_verify_data2(key, algorithm, 0, &data, &signed_by) < 0 ? -EACCES : 0;
}

static int check_keys(const HandshakeProof *proof) {
        for (unsigned i = 0; i < proof->n; i++)
                if (tls_check_key(&proof->chain[i]) < 0)
                        return -EACCES;
        return 0;
}

int handshake_proof_verify(const SignerProof *kind, const void *transcript, size_t size,
                           HandshakeProof *ret, Error *reterr) {
        Handshake handshake = { .n = 0 };
        HandshakeProof proof = { .n = 0 };
        const HandshakeMessage *hello, *last;
        gnutls_pubkey_t key;
        size_t skipped = 0;
        int r = split_handshake(transcript, size, &handshake);

        if (r >= 0)
                r = check_order(&handshake, kind->is_tls13, &skipped);
        if (r < 0)
                return error_setf(reterr, EACCES, "it is not a client's handshake");
        hello = &handshake.messages[skipped + 1];
        last = &handshake.messages[handshake.n - 1];
        if (hello->length < RANDOM_OFFSET + SIGNER_NONCE_SIZE ||
            read_chain(&handshake.messages[handshake.n - (kind->is_tls13 ? 2 : 3)], kind->is_tls13,
                       &proof) < 0)
                return error_setf(reterr, EACCES, "the handshake has no certificate of a client");
        if (check_keys(&proof) < 0)
                return error_setf(reterr, EACCES, "a key of the client is too large or unknown");
        if (gnutls_pubkey_init(&key) < 0)
                return -ENOMEM;
        r = import_public_key(&proof.chain[0], key) < 0
                    ? -EACCES
                    : verify_signature(key, kind, transcript, last);
        gnutls_pubkey_deinit(key);
        if (r < 0)
                return error_setf(reterr, EACCES, "the client's signature is wrong");
        proof.nonce = hello->body + RANDOM_OFFSET;
        *ret = proof;
        return 0;
}
