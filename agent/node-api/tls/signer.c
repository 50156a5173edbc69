/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/tls/signer.h"

#include "agent/model/signer-protocol.h"
#include "agent/node-api/tls/client-certificate.h"
#include "agent/node-api/tls/handshake-proof.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/json-text.h"
#include "common/text.h"

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>

#define NONCE_USEC  (20 * USEC_PER_SEC) /* twice the duration of a handshake */
#define HOUR_USEC   (UINT64_C(3600) * USEC_PER_SEC)
#define TICKET_USEC (24 * HOUR_USEC)

enum {
        USED_MAX = 1024, /* number of proofs within NONCE_USEC */
        HASH_MAX = 64,
        CONTEXT_PADDING = 64,
        TLS12_RANDOMS = 64, /* of the client and the server, before the server's parameters */
        TLS12_CONTENT_MAX = 512,
        NAMED_CURVE = 3,
        NONCE_TEXT = 16, /* number of its bytes before the code */
};

/* The key, its certificate and the client CA, which are replaced together. */
typedef struct SignerMaterial {
        char *certificate, *client_ca; /* PEM */
        gnutls_privkey_t key;
        gnutls_x509_trust_list_t authorities; /* NULL: none */
        char certificate_hash[SHA256_HEX_SIZE];
        char authorities_hash[SHA256_HEX_SIZE];
        bool is_for_clients, has_material;
} SignerMaterial;

struct Signer {
        uint8_t ticket_key[TICKET_KEY_SIZE];
        uint8_t nonce_key[TICKET_KEY_SIZE];
        uint64_t n_nonces;
        SignerMaterial material;
        SignerMaterial before; /* handshakes in progress during a change have its certificate */
        char *error;           /* why newer material is not in use */
        struct {
                uint64_t number, usec; /* for a nonce whose handshake has been proved */
        } used[USED_MAX];
};

int signer_new(Signer **ret) {
        Signer *signer = calloc(1, sizeof(*signer));

        if (!signer)
                return -ENOMEM;
        if (gnutls_rnd(GNUTLS_RND_KEY, signer->nonce_key, sizeof(signer->nonce_key)) < 0) {
                free(signer);
                return -ENOMEM;
        }
        *ret = signer;
        return 0;
}

static void signer_material_done(SignerMaterial *material) {
        free(material->certificate);
        free(material->client_ca);
        if (material->key)
                gnutls_privkey_deinit(material->key);
        if (material->authorities)
                gnutls_x509_trust_list_deinit(material->authorities, 1);
        *material = (SignerMaterial){ 0 };
}

Signer *signer_free(Signer *signer) {
        if (!signer)
                return NULL;
        signer_material_done(&signer->material);
        signer_material_done(&signer->before);
        free(signer->error);
        explicit_bzero(signer, sizeof(*signer));
        free(signer);
        return NULL;
}

const char *signer_authorities(const Signer *signer) {
        return signer->material.authorities_hash;
}

/* ---- material ---- */

static gnutls_datum_t datum_of_pem(const char *text) {
        return (gnutls_datum_t){ (unsigned char *) (uintptr_t) text, (unsigned) strlen(text) };
}

/* A certificate that can also be used as a client certificate is a credential of the node, so other
 * processes must not choose what its key signs. */
static bool names_clients(gnutls_x509_crt_t certificate) {
        char oid[128];
        size_t size = sizeof(oid);

        for (unsigned i = 0;
             gnutls_x509_crt_get_key_purpose_oid(certificate, i, oid, &size, NULL) >= 0;
             i++, size = sizeof(oid))
                if (streq(oid, GNUTLS_KP_TLS_WWW_CLIENT))
                        return true;
        return false;
}

/* Whether the key belongs to the certificate; compares the IDs of the public keys, like GnuTLS. */
static int check_pair(SignerMaterial *material, gnutls_x509_crt_t certificate) {
        unsigned char ids[2][HASH_MAX];
        size_t sizes[2] = { HASH_MAX, HASH_MAX };
        gnutls_pubkey_t public = NULL;
        int code = gnutls_x509_crt_get_key_id(certificate, 0, ids[0], &sizes[0]);

        if (code >= 0)
                code = gnutls_pubkey_init(&public);
        if (code < 0)
                return code;
        code = gnutls_pubkey_import_privkey(public, material->key, 0, 0);
        if (code >= 0)
                code = gnutls_pubkey_get_key_id(public, 0, ids[1], &sizes[1]);
        gnutls_pubkey_deinit(public);
        if (code >= 0 && (sizes[0] != sizes[1] || memcmp(ids[0], ids[1], sizes[0]) != 0))
                code = GNUTLS_E_CERTIFICATE_KEY_MISMATCH;
        material->is_for_clients = names_clients(certificate);
        return code;
}

static int load_key(SignerMaterial *material, const char *certificate, const char *key) {
        gnutls_datum_t pem = datum_of_pem(certificate), key_pem = datum_of_pem(key);
        gnutls_x509_crt_t *chain = NULL;
        unsigned n = 0;
        int code = gnutls_x509_crt_list_import2(&chain, &n, &pem, GNUTLS_X509_FMT_PEM, 0);

        if (code < 0)
                return code;
        code = gnutls_privkey_init(&material->key);
        if (code >= 0)
                code = gnutls_privkey_import_x509_raw(material->key, &key_pem, GNUTLS_X509_FMT_PEM,
                                                      NULL, 0);
        if (code >= 0)
                code = check_pair(material, chain[0]);
        for (unsigned i = 0; i < n; i++)
                gnutls_x509_crt_deinit(chain[i]);
        gnutls_free(chain);
        return code;
}

static int load_authorities(SignerMaterial *material, const char *pem, Error *reterr) {
        gnutls_datum_t data = datum_of_pem(pem);
        int n;

        if (gnutls_x509_trust_list_init(&material->authorities, 0) < 0)
                return -ENOMEM;
        n = gnutls_x509_trust_list_add_trust_mem(material->authorities, &data, NULL,
                                                 GNUTLS_X509_FMT_PEM, 0, 0);
        if (n <= 0)
                return error_setf(reterr, EINVAL, "the certificate authorities of clients: %s",
                                  n < 0 ? gnutls_strerror(n) : "there is no certificate");
        sha256_hex(pem, strlen(pem), material->authorities_hash);
        material->client_ca = strdup(pem);
        return material->client_ca ? 0 : -ENOMEM;
}

static int load_material(const char *json, size_t length, SignerMaterial *ret, Error *reterr) {
        cleanup_with(signer_material_done) SignerMaterial material = { 0 };
        cleanup_json json_t *object = json_loadb(json, length, 0, NULL);
        const char *certificate = json_text(object, "certificate");
        const char *key = json_text(object, "key");
        const char *client_ca = json_text(object, "clientCA");
        int code, r;

        if (!certificate || !key)
                return error_setf(reterr, EINVAL, "there is no serving certificate");
        code = load_key(&material, certificate, key);
        if (code < 0)
                return error_setf(reterr, EINVAL, "the serving certificate and its key: %s",
                                  gnutls_strerror(code));
        r = client_ca ? load_authorities(&material, client_ca, reterr) : 0;
        if (r < 0)
                return r;
        material.certificate = strdup(certificate);
        if (!material.certificate)
                return -ENOMEM;
        sha256_hex(certificate, strlen(certificate), material.certificate_hash);
        material.has_material = true;
        *ret = material;
        material = (SignerMaterial){ 0 };
        return 0;
}

void signer_use_material(Signer *signer, const uint8_t ticket_key[TICKET_KEY_SIZE],
                         const char *json, size_t length) {
        cleanup_error Error error = ERROR_NULL;
        SignerMaterial material = { 0 };
        int r = load_material(json, length, &material, &error);

        memcpy(signer->ticket_key, ticket_key, TICKET_KEY_SIZE);
        (void) text_replace(&signer->error, r < 0 ? error_message(&error, r) : NULL);
        if (r < 0)
                return;
        signer_material_done(&signer->before);
        signer->before = signer->material;
        signer->material = material;
}

static int print_material(const Signer *signer, char **ret, size_t *ret_length, Error *reterr) {
        const SignerMaterial *material = &signer->material;
        cleanup_json json_t *object =
                json_pack("{s:s*, s:s*, s:s*}", "certificate", material->certificate, "clientCA",
                          material->client_ca, "error", signer->error);

        *ret = object ? json_to_text(object, JSON_COMPACT) : NULL;
        *ret_length = strlen(strna(*ret));
        return *ret ? 0 : -ENOMEM;
}

/* ---- nonces: time, number and a code, so that those that are not used cost nothing ---- */

static void make_nonce_code(const Signer *signer, const uint8_t *text, uint8_t ret[NONCE_TEXT]) {
        uint8_t code[SHA256_SIZE] = { 0 };

        (void) gnutls_hmac_fast(GNUTLS_MAC_SHA256, signer->nonce_key, sizeof(signer->nonce_key),
                                text, NONCE_TEXT, code);
        memcpy(ret, code, NONCE_TEXT);
}

static int make_nonce(Signer *signer, char **ret, size_t *ret_length) {
        uint64_t parts[2] = { now_boottime_usec(), ++signer->n_nonces };
        uint8_t *nonce = calloc(1, SIGNER_NONCE_SIZE + 1);

        if (!nonce)
                return -ENOMEM;
        memcpy(nonce, parts, sizeof(parts));
        make_nonce_code(signer, nonce, nonce + NONCE_TEXT);
        *ret = (char *) nonce;
        *ret_length = SIGNER_NONCE_SIZE;
        return 0;
}

/* Accepts each nonce only once. */
static int use_nonce(Signer *signer, const unsigned char *nonce) {
        uint64_t parts[2], now = now_boottime_usec();
        uint8_t code[NONCE_TEXT];
        size_t free_place = USED_MAX;

        memcpy(parts, nonce, sizeof(parts));
        make_nonce_code(signer, nonce, code);
        if (gnutls_memcmp(code, nonce + NONCE_TEXT, NONCE_TEXT) != 0 || now - parts[0] > NONCE_USEC)
                return -EACCES;
        for (size_t i = 0; i < USED_MAX; i++) {
                if (signer->used[i].number == parts[1])
                        return -EACCES;
                if (signer->used[i].number == 0 || now - signer->used[i].usec > NONCE_USEC)
                        free_place = i;
        }
        if (free_place == USED_MAX)
                return -EBUSY;
        signer->used[free_place].number = parts[1];
        signer->used[free_place].usec = now;
        return 0;
}

/* ---- signatures ---- */

static int sign_tls13(const SignerMaterial *material, gnutls_sign_algorithm_t algorithm,
                      const gnutls_datum_t *hash, gnutls_datum_t *ret) {
        static const char context[] = "TLS 1.3, server CertificateVerify"; /* including its NUL */
        unsigned char content[CONTEXT_PADDING + sizeof(context) + HASH_MAX];
        const gnutls_datum_t data = { content,
                                      (unsigned) (CONTEXT_PADDING + sizeof(context)) + hash->size };

        if (hash->size > HASH_MAX)
                return GNUTLS_E_INVALID_REQUEST;
        memset(content, ' ', CONTEXT_PADDING);
        memcpy(content + CONTEXT_PADDING, context, sizeof(context));
        memcpy(content + CONTEXT_PADDING + sizeof(context), hash->data, hash->size);
        return gnutls_privkey_sign_data2(material->key, algorithm,
                                         GNUTLS_PRIVKEY_FLAG_RSA_PSS_FIXED_SALT_LENGTH, &data, ret);
}

/* In TLS 1.2 GnuTLS does not expose the hashed data. */
static int sign_tls12_hash(const SignerMaterial *material, gnutls_sign_algorithm_t algorithm,
                           const gnutls_datum_t *hash, gnutls_datum_t *ret) {
        if (material->is_for_clients || algorithm == GNUTLS_SIGN_RSA_RAW ||
            hash->size != gnutls_hash_get_len(gnutls_sign_get_hash_algorithm(algorithm)))
                return GNUTLS_E_INVALID_REQUEST;
        return gnutls_privkey_sign_hash2(material->key, algorithm, 0, hash, ret);
}

static int sign_tls12(const SignerMaterial *material, gnutls_sign_algorithm_t algorithm,
                      const gnutls_datum_t *data, gnutls_datum_t *ret) {
        if (data->size <= TLS12_RANDOMS || data->size > TLS12_CONTENT_MAX ||
            data->data[TLS12_RANDOMS] != NAMED_CURVE)
                return GNUTLS_E_INVALID_REQUEST;
        return gnutls_privkey_sign_data2(material->key, algorithm, 0, data, ret);
}

static int copy_datum(const gnutls_datum_t *datum, char **ret, size_t *ret_length) {
        *ret = calloc(1, datum->size + 1);
        if (!*ret)
                return -ENOMEM;
        memcpy(*ret, datum->data, datum->size);
        *ret_length = datum->size;
        return 0;
}

static const SignerMaterial *find_material(const Signer *signer, const SignerRequest *request) {
        const SignerMaterial *both[] = { &signer->material, &signer->before };

        for (size_t i = 0; i < N_ELEMENTS(both); i++)
                if (both[i]->has_material &&
                    memcmp(both[i]->certificate_hash, request->certificate, SHA256_HEX_SIZE) == 0)
                        return both[i];
        return NULL;
}

static int sign_for_api(const Signer *signer, const char *data, size_t length, char **ret,
                        size_t *ret_length, Error *reterr) {
        static int (*const functions[])(const SignerMaterial *, gnutls_sign_algorithm_t,
                                        const gnutls_datum_t *, gnutls_datum_t *) = {
                [SIGNED_TLS13] = sign_tls13,
                [SIGNED_TLS12_HASH] = sign_tls12_hash,
                [SIGNED_TLS12] = sign_tls12,
        };
        const SignerMaterial *material;
        SignerRequest request;
        gnutls_datum_t content, signature = { 0 };
        int code, r;

        if (length <= sizeof(request))
                return error_setf(reterr, EINVAL, "there is nothing to sign");
        memcpy(&request, data, sizeof(request));
        content = (gnutls_datum_t){ (unsigned char *) (uintptr_t) data + sizeof(request),
                                    (unsigned) (length - sizeof(request)) };
        material = find_material(signer, &request);
        if (!material || request.thing >= N_ELEMENTS(functions))
                return error_setf(reterr, EINVAL, "the signer does not sign such a request");
        code = functions[request.thing](material, (gnutls_sign_algorithm_t) request.algorithm,
                                        &content, &signature);
        if (code < 0)
                return error_setf(reterr, EINVAL, "cannot sign: %s", gnutls_strerror(code));
        r = copy_datum(&signature, ret, ret_length);
        gnutls_free(signature.data);
        return r;
}

/* ---- clients ---- */

static int make_ticket(const Signer *signer, const HandshakeProof *proof, char **ret,
                       Error *reterr) {
        cleanup_with(api_user_done) ApiUser user = { 0 };
        uint64_t expires, limit;
        int r = client_certificate_authenticate(signer->material.authorities, proof->chain,
                                                proof->n, &user, &expires, reterr);

        if (r < 0)
                return r;
        /* The time is rounded to the hour, so that the connections of a client have the same
         * ticket, which makes caching effective. */
        limit = (now_realtime_usec() + TICKET_USEC) / HOUR_USEC * HOUR_USEC;
        r = client_ticket_format(&user, MIN(expires, limit), signer->material.authorities_hash,
                                 signer->ticket_key, ret);
        return r == -E2BIG
                       ? error_setf(reterr, EACCES, "the client certificate has too many groups")
                       : r;
}

static int prove_client(Signer *signer, const char *data, size_t length, char **ret,
                        size_t *ret_length, Error *reterr) {
        cleanup_free char *ticket = NULL;
        SignerProof kind;
        HandshakeProof proof;
        int r;

        if (length <= sizeof(kind) || !signer->material.authorities)
                return error_setf(reterr, EACCES, "no client can prove its certificate");
        memcpy(&kind, data, sizeof(kind));
        r = handshake_proof_verify(&kind, data + sizeof(kind), length - sizeof(kind), &proof,
                                   reterr);
        if (r < 0)
                return r;
        r = make_ticket(signer, &proof, &ticket, reterr);
        if (r < 0)
                return r;
        if (use_nonce(signer, proof.nonce) < 0)
                return error_setf(reterr, EACCES, "the handshake is not a new one");
        *ret_length = strlen(ticket);
        *ret = TAKE_PTR(ticket);
        return 0;
}

/* ---- packets ---- */

static int answer_packet(Signer *signer, const char *packet, size_t length, char **ret,
                         size_t *ret_length, Error *reterr) {
        switch (length > 0 ? packet[0] : 0) {
        case SIGNER_GET_MATERIAL:
                return print_material(signer, ret, ret_length, reterr);
        case SIGNER_GET_NONCE:
                return make_nonce(signer, ret, ret_length);
        case SIGNER_SIGN:
                return sign_for_api(signer, packet + 1, length - 1, ret, ret_length, reterr);
        case SIGNER_PROVE:
                return prove_client(signer, packet + 1, length - 1, ret, ret_length, reterr);
        default:
                return error_setf(reterr, EINVAL, "unknown packet");
        }
}

int signer_answer(Signer *signer, const char *packet, size_t length, char **ret,
                  size_t *ret_length) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *answer = NULL;
        size_t n = 0;
        int r = answer_packet(signer, packet, length, &answer, &n, &error);
        const char *text = r < 0 ? error_message(&error, r) : answer;

        if (r < 0)
                n = strlen(text);
        *ret = calloc(1, n + 2);
        if (!*ret)
                return -ENOMEM;
        (*ret)[0] = r < 0 ? SIGNER_FAILED : SIGNER_DONE;
        memcpy(*ret + 1, text, n);
        *ret_length = n + 1;
        return 0;
}
