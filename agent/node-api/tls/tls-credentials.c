/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/tls/tls-credentials.h"

#include "agent/model/signer-protocol.h"
#include "agent/node-api/http/byte-queue.h"
#include "agent/node-api/tls/handshake-transcript.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/tls-limits.h"

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <stdint.h>

enum {
        CHAIN_MAX = 16,                                     /* number of certificates in the
                                                             * server's chain */
        HELLO_RETRY = GNUTLS_HANDSHAKE_HELLO_RETRY_REQUEST, /* GnuTLS's number */
};

struct TlsCredentials {
        unsigned n_refs;
        TlsSigner signer;
        gnutls_pk_algorithm_t algorithm; /* algorithm of the serving key, which this does not
                                          * contain */
        unsigned bits;
        char certificate_hash[SHA256_HEX_SIZE];
        gnutls_certificate_credentials_t certificate;
        gnutls_priority_t priority, tls12_priority; /* NULL: none of the suites fits the key */
        bool has_tls12_priority;
        bool has_authorities; /* of clients */
};

/* One session, until its handshake is over. */
typedef struct TlsHandshake {
        TlsCredentials *credentials;
        ByteQueue transcript;
        bool is_started;
        bool is_signed;  /* sent by the client; later messages prove nothing */
        bool is_unknown; /* the handshake was too long to be stored, or of another kind */
} TlsHandshake;

/* GnuTLS does not pass the session to a signing function. */
static gnutls_session_t signing_session;

TlsCredentials *tls_credentials_ref(TlsCredentials *credentials) {
        credentials->n_refs++;
        return credentials;
}

TlsCredentials *tls_credentials_unref(TlsCredentials *credentials) {
        if (!credentials || --credentials->n_refs > 0)
                return NULL;
        if (credentials->certificate)
                gnutls_certificate_free_credentials(credentials->certificate);
        if (credentials->priority)
                gnutls_priority_deinit(credentials->priority);
        if (credentials->tls12_priority)
                gnutls_priority_deinit(credentials->tls12_priority);
        free(credentials);
        return NULL;
}

static gnutls_datum_t datum_of_text(const char *text) {
        /* The data is not modified. */
        return (gnutls_datum_t){ (unsigned char *) (uintptr_t) text, (unsigned) strlen(text) };
}

/* ---- the signer ---- */

static int ask_signer(const TlsCredentials *credentials, const void *request, size_t length,
                      char **ret, size_t *ret_length, Error *reterr) {
        return credentials->signer.ask(credentials->signer.userdata, request, length, ret,
                                       ret_length, reterr);
}

/* A packet with up to three parts. */
static int ask_signer_with(const TlsCredentials *credentials, SignerPacket packet, const void *head,
                           size_t head_length, const void *data, size_t length, char **ret,
                           size_t *ret_length, Error *reterr) {
        cleanup_free char *request = malloc(1 + head_length + length);

        if (!request)
                return -ENOMEM;
        request[0] = (char) packet;
        memcpy(request + 1, head, head_length);
        memcpy(request + 1 + head_length, data, length);
        return ask_signer(credentials, request, 1 + head_length + length, ret, ret_length, reterr);
}

static int sign_by_signer(const TlsCredentials *credentials, SignedThing thing,
                          gnutls_sign_algorithm_t algorithm, const gnutls_datum_t *data,
                          gnutls_datum_t *ret) {
        SignerRequest request = { .thing = thing, .algorithm = algorithm };
        cleanup_free char *signature = NULL;
        size_t length;

        memcpy(request.certificate, credentials->certificate_hash, sizeof(request.certificate));
        if (ask_signer_with(credentials, SIGNER_SIGN, &request, sizeof(request), data->data,
                            data->size, &signature, &length, NULL) < 0)
                return GNUTLS_E_PK_SIGN_FAILED;
        ret->data = gnutls_malloc(length);
        if (!ret->data)
                return GNUTLS_E_MEMORY_ERROR;
        memcpy(ret->data, signature, length);
        ret->size = (unsigned) length;
        return 0;
}

/* The signer itself creates the data to be signed from the hash of the handshake, so that it signs
 * nothing else. */
static int sign_handshake(const TlsHandshake *handshake, gnutls_sign_algorithm_t algorithm,
                          gnutls_datum_t *ret) {
        const ByteQueue *transcript = &handshake->transcript;
        uint8_t hash[64];
        int n = handshake->is_unknown ? -EBADMSG
                                      : handshake_hash(byte_queue_bytes(transcript),
                                                       byte_queue_length(transcript),
                                                       gnutls_prf_hash_get(signing_session), hash);
        const gnutls_datum_t data = { hash, (unsigned) n };

        return n < 0 ? GNUTLS_E_PK_SIGN_FAILED
                     : sign_by_signer(handshake->credentials, SIGNED_TLS13, algorithm, &data, ret);
}

/* PKCS #1 RSA signs the hash with its algorithm's name, which the signer adds. */
static int sign_named_hash(const TlsCredentials *credentials, const gnutls_datum_t *info,
                           gnutls_datum_t *ret) {
        gnutls_digest_algorithm_t hash;
        unsigned char digest[64];
        unsigned length = sizeof(digest);
        int code = gnutls_decode_ber_digest_info(info, &hash, digest, &length);
        const gnutls_datum_t data = { digest, length };

        return code < 0 ? code
                        : sign_by_signer(credentials, SIGNED_TLS12_HASH,
                                         gnutls_pk_to_sign(GNUTLS_PK_RSA, hash), &data, ret);
}

static int on_sign_hash(gnutls_privkey_t key, gnutls_sign_algorithm_t algorithm, void *userdata,
                        unsigned flags, const gnutls_datum_t *hash, gnutls_datum_t *ret) {
        const TlsHandshake *handshake = gnutls_session_get_ptr(signing_session);

        if (gnutls_protocol_get_version(signing_session) == GNUTLS_TLS1_3)
                return sign_handshake(handshake, algorithm, ret);
        return algorithm == GNUTLS_SIGN_RSA_RAW
                       ? sign_named_hash(handshake->credentials, hash, ret)
                       : sign_by_signer(handshake->credentials, SIGNED_TLS12_HASH, algorithm, hash,
                                        ret);
}

static int on_sign_data(gnutls_privkey_t key, gnutls_sign_algorithm_t algorithm, void *userdata,
                        unsigned flags, const gnutls_datum_t *data, gnutls_datum_t *ret) {
        const TlsHandshake *handshake = gnutls_session_get_ptr(signing_session);

        return gnutls_protocol_get_version(signing_session) == GNUTLS_TLS1_3
                       ? sign_handshake(handshake, algorithm, ret)
                       : sign_by_signer(handshake->credentials, SIGNED_TLS12, algorithm, data, ret);
}

static int on_key_question(gnutls_privkey_t key, unsigned flags, void *userdata) {
        const TlsCredentials *credentials = userdata;

        if (flags & GNUTLS_PRIVKEY_INFO_PK_ALGO)
                return (int) credentials->algorithm;
        if (flags & GNUTLS_PRIVKEY_INFO_PK_ALGO_BITS)
                return (int) credentials->bits;
        if (flags & GNUTLS_PRIVKEY_INFO_HAVE_SIGN_ALGO)
                return gnutls_sign_supports_pk_algorithm(
                               (gnutls_sign_algorithm_t) GNUTLS_FLAGS_TO_SIGN_ALGO(flags),
                               credentials->algorithm) != 0;
        return -1;
}

static int make_signers_key(TlsCredentials *credentials, gnutls_pcert_st *certificate,
                            gnutls_privkey_t *ret) {
        gnutls_privkey_t key;

        credentials->algorithm = (gnutls_pk_algorithm_t) gnutls_pubkey_get_pk_algorithm(
                certificate->pubkey, &credentials->bits);
        if (gnutls_privkey_init(&key) < 0)
                return GNUTLS_E_MEMORY_ERROR;
        *ret = key;
        return gnutls_privkey_import_ext4(key, credentials, on_sign_data, on_sign_hash, NULL, NULL,
                                          on_key_question, 0);
}

/* On success the credentials own the certificates and the key. */
static int use_server_chain(TlsCredentials *credentials, gnutls_pcert_st *chain, unsigned n) {
        gnutls_privkey_t key = NULL;
        int code = make_signers_key(credentials, &chain[0], &key);

        if (code >= 0)
                code = gnutls_certificate_set_key(credentials->certificate, NULL, 0, chain, (int) n,
                                                  key);
        if (code >= 0)
                return 0;
        if (key)
                gnutls_privkey_deinit(key);
        for (unsigned i = 0; i < n; i++)
                gnutls_pcert_deinit(&chain[i]);
        return code;
}

static int set_server_certificate(TlsCredentials *credentials, const TlsMaterial *material,
                                  Error *reterr) {
        gnutls_pcert_st chain[CHAIN_MAX];
        unsigned n = CHAIN_MAX;
        gnutls_datum_t certificate = datum_of_text(strna(material->certificate));
        int code =
                gnutls_pcert_list_import_x509_raw(chain, &n, &certificate, GNUTLS_X509_FMT_PEM, 0);

        sha256_hex(strna(material->certificate), strlen(strna(material->certificate)),
                   credentials->certificate_hash);
        gnutls_certificate_set_flags(credentials->certificate,
                                     GNUTLS_CERTIFICATE_SKIP_KEY_CERT_MATCH);
        if (code >= 0 && n == 0)
                code = GNUTLS_E_NO_CERTIFICATE_FOUND;
        if (code >= 0)
                code = use_server_chain(credentials, chain, n);
        if (code < 0)
                return error_setf(reterr, EINVAL, "the serving certificate: %s",
                                  gnutls_strerror(code));
        return 0;
}

/* The authorities' names, by which clients choose a certificate. */
static int set_client_authorities(TlsCredentials *credentials, const char *pem, Error *reterr) {
        gnutls_datum_t data = datum_of_text(pem);
        int n = gnutls_certificate_set_x509_trust_mem(credentials->certificate, &data,
                                                      GNUTLS_X509_FMT_PEM);

        if (n <= 0)
                return error_setf(reterr, EINVAL, "the certificate authorities of clients: %s",
                                  n < 0 ? gnutls_strerror(n) : "there is no certificate");
        credentials->has_authorities = true;
        return 0;
}

/* ---- protocol versions and ciphers ---- */

static int parse_priorities(const char *text, gnutls_priority_t *ret, Error *reterr) {
        const char *where = NULL;
        int code = gnutls_priority_init(ret, text, &where);

        if (code >= 0)
                return 0;
        return code == GNUTLS_E_MEMORY_ERROR
                       ? -ENOMEM
                       : error_setf(reterr, EINVAL,
                                    "GnuTLS does not support '%s' in its priorities",
                                    where ? where : text);
}

static bool has_rsa_key(const TlsCredentials *credentials) {
        gnutls_x509_crt_t *chain = NULL;
        unsigned n = 0;
        int algorithm = GNUTLS_PK_UNKNOWN;

        if (gnutls_certificate_get_x509_crt(credentials->certificate, 0, &chain, &n) < 0)
                return false;
        if (n > 0)
                algorithm = gnutls_x509_crt_get_pk_algorithm(chain[0], NULL);
        for (unsigned i = 0; i < n; i++)
                gnutls_x509_crt_deinit(chain[i]);
        gnutls_free(chain);
        return algorithm == GNUTLS_PK_RSA || algorithm == GNUTLS_PK_RSA_PSS;
}

static int set_priorities(TlsCredentials *credentials, const TlsMaterial *material, Error *reterr) {
        const char *tls12 = has_rsa_key(credentials) ? material->tls12_rsa_priorities
                                                     : material->tls12_ecdsa_priorities;
        int r = parse_priorities(material->priorities
                                         ? material->priorities
                                         : "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2",
                                 &credentials->priority, reterr);

        credentials->has_tls12_priority = tls12;
        return r >= 0 && tls12 && tls12[0]
                       ? parse_priorities(tls12, &credentials->tls12_priority, reterr)
                       : r;
}

/* GnuTLS has one cipher list for all versions; tlsCipherSuites applies to TLS 1.2 only. */
static int on_client_hello(gnutls_session_t session) {
        const TlsHandshake *handshake = gnutls_session_get_ptr(session);
        const TlsCredentials *credentials = handshake->credentials;

        if (!credentials->has_tls12_priority ||
            gnutls_protocol_get_version(session) != GNUTLS_TLS1_2)
                return 0;
        return credentials->tls12_priority
                       ? gnutls_priority_set(session, credentials->tls12_priority)
                       : GNUTLS_E_NO_CIPHER_SUITES;
}

int tls_credentials_new(const TlsMaterial *material, TlsCredentials **ret, Error *reterr) {
        cleanup_with(tls_credentials_unrefp) TlsCredentials *credentials =
                calloc(1, sizeof(*credentials));
        int r;

        if (!credentials)
                return -ENOMEM;
        credentials->n_refs = 1;
        credentials->signer = material->signer;
        if (gnutls_certificate_allocate_credentials(&credentials->certificate) < 0)
                return -ENOMEM;
        r = set_server_certificate(credentials, material, reterr);
        if (r < 0)
                return r;
        r = set_priorities(credentials, material, reterr);
        if (r < 0)
                return r;
        if (material->client_ca) {
                r = set_client_authorities(credentials, material->client_ca, reterr);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(credentials);
        return 0;
}

/* ---- sessions ---- */

static int keep_message(TlsHandshake *handshake, unsigned type, const gnutls_datum_t *message) {
        const unsigned char header[] = {
                (unsigned char) (type == HELLO_RETRY ? GNUTLS_HANDSHAKE_SERVER_HELLO : type),
                (unsigned char) (message->size >> 16), (unsigned char) (message->size >> 8),
                (unsigned char) message->size
        };
        int r = byte_queue_append(&handshake->transcript, SIGNER_TRANSCRIPT_MAX, header,
                                  sizeof(header));

        return r < 0 ? r
                     : byte_queue_append(&handshake->transcript, SIGNER_TRANSCRIPT_MAX,
                                         message->data, message->size);
}

/* Called for each message before it is handled or sent. */
static int on_handshake_message(gnutls_session_t session, unsigned type, unsigned when,
                                unsigned is_incoming, const gnutls_datum_t *message) {
        TlsHandshake *handshake = gnutls_session_get_ptr(session);
        int code = tls_check_peer_message(session, type, when, is_incoming, message);

        if (code < 0 || type == GNUTLS_HANDSHAKE_CHANGE_CIPHER_SPEC)
                return code;
        if (handshake->is_signed)
                return 0;
        handshake->is_signed = is_incoming && type == GNUTLS_HANDSHAKE_CERTIFICATE_VERIFY;
        if ((type > UINT8_MAX && type != HELLO_RETRY) || keep_message(handshake, type, message) < 0)
                handshake->is_unknown = true;
        return 0;
}

static int start_gnutls_session(TlsHandshake *handshake, gnutls_session_t session) {
        static const char protocol[] = "http/1.1";
        const gnutls_datum_t name = datum_of_text(protocol);
        const TlsCredentials *credentials = handshake->credentials;

        if (gnutls_priority_set(session, credentials->priority) < 0 ||
            gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials->certificate) < 0 ||
            gnutls_alpn_set_protocols(session, &name, 1, 0) < 0)
                return -ENOMEM;
        gnutls_certificate_server_set_request(
                session, credentials->has_authorities ? GNUTLS_CERT_REQUEST : GNUTLS_CERT_IGNORE);
        gnutls_session_set_ptr(session, handshake);
        gnutls_handshake_set_hook_function(session, (unsigned) GNUTLS_HANDSHAKE_ANY,
                                           GNUTLS_HOOK_PRE, on_handshake_message);
        gnutls_handshake_set_post_client_hello_function(session, on_client_hello);
        return 0;
}

int tls_credentials_start_session(TlsCredentials *credentials, gnutls_session_t *ret) {
        TlsHandshake *handshake = calloc(1, sizeof(*handshake));
        gnutls_session_t session;

        if (!handshake)
                return -ENOMEM;
        if (gnutls_init(&session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0) {
                free(handshake);
                return -ENOMEM;
        }
        handshake->credentials = tls_credentials_ref(credentials);
        if (start_gnutls_session(handshake, session) < 0) {
                gnutls_session_set_ptr(session, handshake);
                tls_session_end(session);
                return -ENOMEM;
        }
        *ret = session;
        return 0;
}

void tls_session_end(gnutls_session_t session) {
        TlsHandshake *handshake = gnutls_session_get_ptr(session);

        gnutls_deinit(session);
        byte_queue_done(&handshake->transcript);
        tls_credentials_unref(handshake->credentials);
        free(handshake);
}

/* The nonce proves to the signer that a client's signature is recent. */
static int use_signers_nonce(TlsHandshake *handshake, gnutls_session_t session) {
        static const char request[] = { SIGNER_GET_NONCE };
        cleanup_free char *nonce = NULL;
        gnutls_datum_t random;
        size_t length;

        handshake->is_started = true;
        if (!handshake->credentials->has_authorities)
                return 0;
        if (ask_signer(handshake->credentials, request, sizeof(request), &nonce, &length, NULL) < 0)
                return GNUTLS_E_INTERNAL_ERROR;
        random = (gnutls_datum_t){ (unsigned char *) nonce, (unsigned) length };
        return gnutls_handshake_set_random(session, &random);
}

int tls_session_handshake(gnutls_session_t session) {
        TlsHandshake *handshake = gnutls_session_get_ptr(session);
        int code = handshake->is_started ? 0 : use_signers_nonce(handshake, session);

        if (code < 0)
                return code;
        signing_session = session;
        code = gnutls_handshake(session);
        signing_session = NULL;
        return code;
}

int tls_session_prove_client(gnutls_session_t session, char **ret_ticket, Error *reterr) {
        TlsHandshake *handshake = gnutls_session_get_ptr(session);
        const ByteQueue *transcript = &handshake->transcript;
        const SignerProof proof = { .is_tls13 =
                                            gnutls_protocol_get_version(session) == GNUTLS_TLS1_3,
                                    .hash = gnutls_prf_hash_get(session) };
        unsigned n = 0;
        size_t length;
        int r = 0;

        if (gnutls_certificate_get_peers(session, &n) && n > 0)
                r = handshake->is_unknown
                            ? error_setf(reterr, EACCES, "the handshake is too long")
                            : ask_signer_with(handshake->credentials, SIGNER_PROVE, &proof,
                                              sizeof(proof), byte_queue_bytes(transcript),
                                              byte_queue_length(transcript), ret_ticket, &length,
                                              reterr);
        byte_queue_done(&handshake->transcript);
        return r < 0 ? r : n > 0;
}
