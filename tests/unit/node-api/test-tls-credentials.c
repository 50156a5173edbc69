/* SPDX-License-Identifier: Apache-2.0 */

/* Handshakes with both ends in one process, which act in turns. The clients' certificates are
 * created here, some of them for an invented public key: their signatures are random bytes. */

#include "agent/node-api/tls/tls-credentials.h"

#include "agent/model/signer-protocol.h"
#include "agent/node-api/tls/handshake-proof.h"
#include "agent/node-api/tls/handshake-transcript.h"
#include "agent/node-api/tls/signer.h"
#include "agent/node-api/tls/tls-stream.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/hash.h"
#include "tests/test.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/x509.h>
#include <sys/socket.h>
#include <time.h>

static const char *const versions[] = { "NORMAL:-VERS-ALL:+VERS-TLS1.3",
                                        "NORMAL:-VERS-ALL:+VERS-TLS1.2" };

/* ---- certificates ---- */

typedef struct Pair {
        gnutls_x509_crt_t certificate;
        gnutls_privkey_t key;
} Pair;

static gnutls_privkey_t make_key(gnutls_pk_algorithm_t algorithm, unsigned bits) {
        gnutls_privkey_t key;

        REQUIRE(gnutls_privkey_init(&key) >= 0);
        REQUIRE(gnutls_privkey_generate(key, algorithm, bits, 0) >= 0);
        return key;
}

static gnutls_privkey_t make_curve_key(void) {
        return make_key(GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1));
}

static gnutls_pubkey_t public_key_of(gnutls_privkey_t key) {
        gnutls_pubkey_t public;

        REQUIRE(gnutls_pubkey_init(&public) >= 0);
        REQUIRE(gnutls_pubkey_import_privkey(public, key, 0, 0) >= 0);
        return public;
}

static gnutls_x509_crt_t start_certificate(gnutls_pubkey_t key_consume) {
        gnutls_x509_crt_t certificate;
        time_t now = time(NULL);

        REQUIRE(gnutls_x509_crt_init(&certificate) >= 0);
        REQUIRE(gnutls_x509_crt_set_version(certificate, 3) >= 0);
        REQUIRE(gnutls_x509_crt_set_serial(certificate, "\1", 1) >= 0);
        REQUIRE(gnutls_x509_crt_set_activation_time(certificate, now - 3600) >= 0);
        REQUIRE(gnutls_x509_crt_set_expiration_time(certificate, now + 3600) >= 0);
        REQUIRE(gnutls_x509_crt_set_pubkey(certificate, key_consume) >= 0);
        gnutls_pubkey_deinit(key_consume);
        return certificate;
}

static void sign_certificate(gnutls_x509_crt_t certificate, const Pair *signer) {
        REQUIRE(gnutls_x509_crt_privkey_sign(certificate, signer->certificate, signer->key,
                                             GNUTLS_DIG_SHA256, 0) >= 0);
}

static const Pair *authority(void) {
        static Pair made;

        if (made.key)
                return &made;
        made.key = make_curve_key();
        made.certificate = start_certificate(public_key_of(made.key));
        REQUIRE(gnutls_x509_crt_set_dn(made.certificate, "CN=authority", NULL) >= 0);
        REQUIRE(gnutls_x509_crt_set_basic_constraints(made.certificate, 1, -1) >= 0);
        sign_certificate(made.certificate, &made);
        return &made;
}

static char *text_of_datum(gnutls_datum_t *datum) {
        char *text = strndup((const char *) datum->data, datum->size);

        REQUIRE(text);
        gnutls_free(datum->data);
        return text;
}

/* ---- the signer ---- */

static const uint8_t ticket_key[TICKET_KEY_SIZE] = "a key of tickets";

/* The last request and its reply. */
static struct {
        char request[SIGNER_PACKET_MAX];
        size_t length;
        bool is_deaf; /* the reply never comes */
} asked;

static int ask_test_signer(void *userdata, const void *request, size_t length, char **ret,
                           size_t *ret_length, Error *reterr) {
        char *answer;
        size_t n;
        int r = 0;

        REQUIRE(length <= sizeof(asked.request));
        memcpy(asked.request, request, length);
        asked.length = length;
        if (asked.is_deaf)
                return -ETIMEDOUT;
        REQUIRE(signer_answer(userdata, request, length, &answer, &n) == 0);
        if (answer[0] == SIGNER_DONE) {
                *ret = calloc(1, n);
                memcpy(*ret, answer + 1, n - 1);
                *ret_length = n - 1;
        } else {
                r = error_setf(reterr, EACCES, "%.*s", (int) n - 1, answer + 1);
        }
        free(answer);
        return r;
}

static char *print_pem_material(const Pair *pair, const char *ca) {
        gnutls_datum_t certificate, key;
        gnutls_x509_privkey_t exported;
        cleanup_free char *certificate_pem = NULL, *key_pem = NULL;
        cleanup_json json_t *object = NULL;

        REQUIRE(gnutls_privkey_export_x509(pair->key, &exported) >= 0);
        REQUIRE(gnutls_x509_privkey_export2_pkcs8(exported, GNUTLS_X509_FMT_PEM, NULL,
                                                  GNUTLS_PKCS_PLAIN, &key) >= 0);
        REQUIRE(gnutls_x509_crt_export2(pair->certificate, GNUTLS_X509_FMT_PEM, &certificate) >= 0);
        certificate_pem = text_of_datum(&certificate);
        key_pem = text_of_datum(&key);
        gnutls_x509_privkey_deinit(exported);
        object = json_pack("{s:s, s:s, s:s}", "certificate", certificate_pem, "key", key_pem,
                           "clientCA", ca ? ca : certificate_pem);
        return json_to_text(object, JSON_COMPACT);
}

/* A signer that serves with the authority's own certificate. */
static Signer *test_signer(void) {
        static Signer *made;
        cleanup_free char *material = NULL;

        if (made)
                return made;
        material = print_pem_material(authority(), NULL);
        REQUIRE(signer_new(&made) == 0);
        signer_use_material(made, ticket_key, material, strlen(material));
        return made;
}

static TlsCredentials *make_credentials_of(Signer *signer) {
        static const char request[] = { SIGNER_GET_MATERIAL };
        cleanup_free char *json = NULL;
        cleanup_json json_t *object = NULL;
        cleanup_error Error error = ERROR_NULL;
        TlsCredentials *credentials = NULL;
        size_t length;

        REQUIRE(ask_test_signer(signer, request, 1, &json, &length, NULL) == 0);
        EXPECT(!strstr(json, "PRIVATE") && !strstr(json, "error"));
        object = json_loads(json, 0, NULL);
        REQUIRE(tls_credentials_new(&(TlsMaterial){ .signer = { ask_test_signer, signer },
                                                    .certificate = json_string_value(
                                                            json_object_get(object, "certificate")),
                                                    .client_ca = json_string_value(
                                                            json_object_get(object, "clientCA")) },
                                    &credentials, &error) >= 0);
        return credentials;
}

static TlsCredentials *make_credentials(void) {
        return make_credentials_of(test_signer());
}

/* ---- made-up keys ---- */

typedef struct FakeKey {
        unsigned bits;
        gnutls_pk_algorithm_t algorithm;
} FakeKey;

static int sign_with_random_bytes(gnutls_privkey_t key, gnutls_sign_algorithm_t algorithm,
                                  void *userdata, unsigned flags, const gnutls_datum_t *hash,
                                  gnutls_datum_t *signature) {
        const FakeKey *fake = userdata;

        signature->size = fake->bits / 8;
        signature->data = gnutls_malloc(signature->size);
        for (unsigned i = 0; i < signature->size; i++)
                signature->data[i] = (unsigned char) rand();
        signature->data[0] &= 0x3f; /* less than the modulus */
        return 0;
}

static int describe_fake_key(gnutls_privkey_t key, unsigned flags, void *userdata) {
        const FakeKey *fake = userdata;

        if (flags & GNUTLS_PRIVKEY_INFO_PK_ALGO)
                return (int) fake->algorithm;
        if (flags & GNUTLS_PRIVKEY_INFO_PK_ALGO_BITS)
                return (int) fake->bits;
        return flags & GNUTLS_PRIVKEY_INFO_HAVE_SIGN_ALGO ? 1 : -1;
}

static gnutls_privkey_t make_fake_key(FakeKey *fake) {
        gnutls_privkey_t key;

        REQUIRE(gnutls_privkey_init(&key) >= 0);
        REQUIRE(gnutls_privkey_import_ext4(key, fake, sign_with_random_bytes,
                                           sign_with_random_bytes, NULL, NULL, describe_fake_key,
                                           0) >= 0);
        return key;
}

static gnutls_pubkey_t make_fake_public_key(const FakeKey *fake, unsigned exponent_bytes) {
        gnutls_datum_t modulus = { gnutls_malloc(fake->bits / 8), fake->bits / 8 };
        gnutls_datum_t exponent = { gnutls_malloc(exponent_bytes), exponent_bytes };
        gnutls_pubkey_t key;

        for (unsigned i = 0; i < modulus.size; i++)
                modulus.data[i] = (unsigned char) rand();
        for (unsigned i = 0; i < exponent.size; i++)
                exponent.data[i] = (unsigned char) rand();
        modulus.data[0] |= 0x80;
        modulus.data[modulus.size - 1] |= 1;
        exponent.data[0] = 0x7f;
        exponent.data[exponent.size - 1] |= 1;
        REQUIRE(gnutls_pubkey_init(&key) >= 0);
        REQUIRE(gnutls_pubkey_import_rsa_raw(key, &modulus, &exponent) >= 0);
        gnutls_free(modulus.data);
        gnutls_free(exponent.data);
        return key;
}

static gnutls_x509_crt_t make_fake_certificate(const FakeKey *fake, unsigned exponent_bytes) {
        gnutls_x509_crt_t certificate =
                start_certificate(make_fake_public_key(fake, exponent_bytes));

        REQUIRE(gnutls_x509_crt_set_dn(certificate, "CN=stranger", NULL) >= 0);
        sign_certificate(certificate, authority());
        return certificate;
}

/* ---- a client ---- */

typedef struct Client {
        int fds[2]; /* the client's end, and the server's end, which the server owns */
        gnutls_session_t session;
        gnutls_certificate_credentials_t credentials;
        gnutls_pcert_st chain[2];
        unsigned n_chain;
        gnutls_privkey_t key;
        int code; /* error code of the handshake */
} Client;

static int choose_certificate(gnutls_session_t session, const gnutls_datum_t *names, int n_names,
                              const gnutls_pk_algorithm_t *algorithms, int n_algorithms,
                              gnutls_pcert_st **certificates, unsigned *n_certificates,
                              gnutls_privkey_t *key) {
        Client *client = gnutls_session_get_ptr(session);

        *certificates = client->chain;
        *n_certificates = client->n_chain;
        *key = client->key;
        return 0;
}

static void client_add(Client *client, gnutls_x509_crt_t certificate_consume) {
        REQUIRE(gnutls_pcert_import_x509(&client->chain[client->n_chain++], certificate_consume,
                                         0) >= 0);
        gnutls_x509_crt_deinit(certificate_consume);
}

/* Uses the client's certificates; 'key_consume' is the key of the first one. NULL: no key. */
static void client_start(Client *client, const char *priorities, gnutls_privkey_t key_consume) {
        client->key = key_consume;
        client->code = GNUTLS_E_AGAIN;
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, client->fds) ==
                0);
        REQUIRE(gnutls_init(&client->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK) >= 0);
        REQUIRE(gnutls_priority_set_direct(client->session, priorities, NULL) >= 0);
        REQUIRE(gnutls_certificate_allocate_credentials(&client->credentials) >= 0);
        if (key_consume)
                gnutls_certificate_set_retrieve_function2(client->credentials, choose_certificate);
        REQUIRE(gnutls_credentials_set(client->session, GNUTLS_CRD_CERTIFICATE,
                                       client->credentials) >= 0);
        gnutls_session_set_ptr(client->session, client);
        gnutls_transport_set_int(client->session, client->fds[0]);
        gnutls_handshake_set_timeout(client->session, GNUTLS_INDEFINITE_TIMEOUT);
}

static bool is_handshake_over(int code) {
        return code >= 0 || gnutls_error_is_fatal(code);
}

static void client_step(Client *client) {
        if (!is_handshake_over(client->code))
                client->code = gnutls_handshake(client->session);
}

static void client_done(Client *client) {
        gnutls_deinit(client->session);
        gnutls_certificate_free_credentials(client->credentials);
        for (unsigned i = 0; i < client->n_chain; i++)
                gnutls_pcert_deinit(&client->chain[i]);
        if (client->key)
                gnutls_privkey_deinit(client->key);
        close_fd(client->fds[0]);
}

/* Returns the server's error code; the caller owns the session. */
static int shake_hands(Client *client, TlsCredentials *credentials, gnutls_session_t *ret) {
        int code = GNUTLS_E_AGAIN;

        REQUIRE(tls_credentials_start_session(credentials, ret) == 0);
        gnutls_transport_set_int(*ret, client->fds[1]);
        for (unsigned i = 0; i < 1000 && !is_handshake_over(code); i++) {
                client_step(client);
                code = tls_session_handshake(*ret);
        }
        return code;
}

static int serve_client(Client *client, const char *priorities, gnutls_privkey_t key_consume) {
        cleanup_with(tls_credentials_unrefp) TlsCredentials *credentials = make_credentials();
        gnutls_session_t session;
        int code;

        client_start(client, priorities, key_consume);
        code = shake_hands(client, credentials, &session);
        tls_session_end(session);
        close_fd(client->fds[1]);
        client_done(client);
        return code;
}

/* ---- large keys ---- */

TEST(a_large_rsa_key_of_a_client_is_refused_before_it_verifies)
{
        static const struct {
                unsigned bits, exponent_bytes;
                int code;
        } cases[] = {
                { 2048, 4, GNUTLS_E_PK_SIG_VERIFY_FAILED },
                { 8192, 4, GNUTLS_E_PK_SIG_VERIFY_FAILED },
                { 2048, 5, GNUTLS_E_INSUFFICIENT_SECURITY },
                { 8200, 3, GNUTLS_E_INSUFFICIENT_SECURITY },
                { 16384, 2048, GNUTLS_E_INSUFFICIENT_SECURITY },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases) * N_ELEMENTS(versions); i++) {
                FakeKey fake = { cases[i / 2].bits, GNUTLS_PK_RSA };
                Client client = { 0 };

                client_add(&client, make_fake_certificate(&fake, cases[i / 2].exponent_bytes));
                EXPECT_EQ(serve_client(&client, versions[i % 2], make_fake_key(&fake)),
                          cases[i / 2].code);
        }
}

static gnutls_x509_crt_t make_pss_certificate(const FakeKey *fake, unsigned exponent_bytes) {
        gnutls_x509_crt_t certificate =
                start_certificate(make_fake_public_key(fake, exponent_bytes));
        gnutls_x509_spki_t parameters;

        REQUIRE(gnutls_x509_spki_init(&parameters) >= 0);
        gnutls_x509_spki_set_rsa_pss_params(parameters, GNUTLS_DIG_SHA256, 32);
        REQUIRE(gnutls_x509_crt_set_spki(certificate, parameters, 0) >= 0);
        gnutls_x509_spki_deinit(parameters);
        REQUIRE(gnutls_x509_crt_set_dn(certificate, "CN=stranger", NULL) >= 0);
        sign_certificate(certificate, authority());
        return certificate;
}

TEST(a_large_key_of_rsa_pss_is_refused_as_well)
{
        static const struct {
                unsigned bits, exponent_bytes;
                int code;
        } cases[] = {
                { 2048, 3, GNUTLS_E_PK_SIG_VERIFY_FAILED },
                { 2048, 5, GNUTLS_E_INSUFFICIENT_SECURITY },
                { 8200, 3, GNUTLS_E_INSUFFICIENT_SECURITY },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases) * N_ELEMENTS(versions); i++) {
                FakeKey fake = { cases[i / 2].bits, GNUTLS_PK_RSA_PSS };
                Client client = { 0 };

                client_add(&client, make_pss_certificate(&fake, cases[i / 2].exponent_bytes));
                EXPECT_EQ(serve_client(&client, versions[i % 2], make_fake_key(&fake)),
                          cases[i / 2].code);
        }
}

/* The other certificate may be one that the authority has issued, for example for a client: GnuTLS
 * then verifies the first certificate with its key. */
TEST(a_large_key_of_another_certificate_of_the_chain_is_refused_as_well)
{
        for (size_t i = 0; i < N_ELEMENTS(versions); i++) {
                FakeKey fake = { 16384, GNUTLS_PK_RSA };
                gnutls_privkey_t key = make_curve_key();
                gnutls_x509_crt_t first = start_certificate(public_key_of(key));
                Client client = { 0 };

                REQUIRE(gnutls_x509_crt_set_dn(first, "CN=jane", NULL) >= 0);
                sign_certificate(first, authority());
                client_add(&client, first);
                client_add(&client, make_fake_certificate(&fake, 3));
                EXPECT_EQ(serve_client(&client, versions[i], key), GNUTLS_E_INSUFFICIENT_SECURITY);
        }
}

/* GnuTLS parses the parts of a subject in quadratic time. */
TEST(a_client_may_not_send_long_certificates)
{
        static const struct {
                unsigned bytes;
                int code;
        } cases[] = { { 12 * 1024, 0 }, { 16 * 1024, GNUTLS_E_HANDSHAKE_TOO_LARGE } };
        static char comment[16 * 1024] = "\x04\x82"; /* an octet string */

        for (size_t i = 0; i < N_ELEMENTS(cases) * N_ELEMENTS(versions); i++) {
                unsigned length = cases[i / 2].bytes - 4;
                gnutls_privkey_t key = make_curve_key();
                gnutls_x509_crt_t certificate = start_certificate(public_key_of(key));
                Client client = { 0 };

                comment[2] = (char) (length >> 8);
                comment[3] = (char) (length & 0xff);
                REQUIRE(gnutls_x509_crt_set_extension_by_oid(certificate, "1.2.3.4", comment,
                                                             cases[i / 2].bytes, 0) >= 0);
                sign_certificate(certificate, authority());
                client_add(&client, certificate);
                EXPECT_EQ(serve_client(&client, versions[i % 2], key), cases[i / 2].code);
        }
}

/* ---- other clients meanwhile ---- */

typedef struct Ends {
        unsigned n_open, n_closed;
} Ends;

static void on_test_open(TlsStream *stream, int fd, void *userdata) {
        Ends *ends = userdata;

        close_fd(fd);
        ends->n_open++;
}

static void on_test_closed(TlsStream *stream, void *userdata) {
        Ends *ends = userdata;

        ends->n_closed++;
}

static double used_seconds(void) {
        struct timespec used;

        REQUIRE(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0);
        return (double) used.tv_sec + (double) used.tv_nsec / 1e9;
}

/* The server has only one loop, which serves no other client while it verifies a certificate. */
TEST(a_large_key_does_not_delay_other_clients)
{
        static const TlsStreamHandlers handlers = { on_test_open, on_test_closed };
        cleanup_with(tls_credentials_unrefp) TlsCredentials *credentials = make_credentials();
        FakeKey fake = { 32768, GNUTLS_PK_RSA };
        Client clients[2] = { 0 };
        TlsStream *streams[2];
        Ends ends[2] = { 0 };
        sd_event *event = NULL;
        double start;

        REQUIRE(sd_event_new(&event) >= 0);
        client_add(&clients[0], make_fake_certificate(&fake, 4096));
        client_start(&clients[0], versions[0], make_fake_key(&fake));
        client_start(&clients[1], versions[0], NULL);
        start = used_seconds();
        for (unsigned i = 0; i < 2; i++)
                REQUIRE(tls_stream_new(event, clients[i].fds[1], credentials, &handlers, &ends[i],
                                       &streams[i]) == 0);
        for (unsigned i = 0; i < 1000 && (ends[0].n_closed == 0 || ends[1].n_open == 0); i++) {
                client_step(&clients[0]);
                client_step(&clients[1]);
                REQUIRE(sd_event_run(event, 10 * USEC_PER_MSEC) >= 0);
        }
        EXPECT(used_seconds() - start < 1);
        EXPECT(ends[0].n_closed == 1 && ends[0].n_open == 0);
        EXPECT(ends[1].n_open == 1);
        for (unsigned i = 0; i < 2; i++) {
                tls_stream_free(streams[i]);
                client_done(&clients[i]);
        }
        sd_event_unref(event);
}

/* ---- users ---- */

/* A handshake, and the ticket for it. */
static int prove_client(gnutls_x509_crt_t certificate_consume, gnutls_privkey_t key_consume,
                        const char *priorities, Signer *signer, char **ret_ticket, Error *reterr) {
        cleanup_with(tls_credentials_unrefp) TlsCredentials *credentials =
                make_credentials_of(signer);
        Client client = { 0 };
        gnutls_session_t session;
        int r;

        if (certificate_consume) {
                sign_certificate(certificate_consume, authority());
                client_add(&client, certificate_consume);
        }
        client_start(&client, priorities, key_consume);
        EXPECT_EQ(shake_hands(&client, credentials, &session), 0);
        r = tls_session_prove_client(session, ret_ticket, reterr);
        tls_session_end(session);
        close_fd(client.fds[1]);
        client_done(&client);
        return r;
}

/* Authenticates a client whose certificate the authority has signed. */
static int authenticate_client(gnutls_x509_crt_t certificate_consume, gnutls_privkey_t key_consume,
                               const char *priorities, ApiUser *ret, Error *reterr) {
        cleanup_free char *ticket = NULL;
        int r = prove_client(certificate_consume, key_consume, priorities, test_signer(), &ticket,
                             reterr);

        if (r > 0)
                REQUIRE(client_ticket_parse(ticket, now_realtime_usec(),
                                            signer_authorities(test_signer()), ticket_key,
                                            ret) == 0);
        return r;
}

TEST(ordinary_keys_of_clients_are_accepted)
{
        static const struct {
                gnutls_pk_algorithm_t algorithm;
                unsigned bits;
        } keys[] = {
                { GNUTLS_PK_RSA, 2048 },
                { GNUTLS_PK_RSA, 4096 },
                { GNUTLS_PK_RSA_PSS, 2048 },
                { GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP521R1) },
                { GNUTLS_PK_EDDSA_ED25519, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_ED25519) },
        };

        for (size_t i = 0; i < N_ELEMENTS(keys) * N_ELEMENTS(versions); i++) {
                gnutls_privkey_t key = make_key(keys[i / 2].algorithm, keys[i / 2].bits);
                gnutls_x509_crt_t certificate = start_certificate(public_key_of(key));
                cleanup_with(api_user_done) ApiUser user = { 0 };
                cleanup_error Error error = ERROR_NULL;

                REQUIRE(gnutls_x509_crt_set_dn(certificate, "CN=jane", NULL) >= 0);
                EXPECT_EQ(authenticate_client(certificate, key, versions[i % 2], &user, &error), 1);
                EXPECT_STREQ(user.name, "jane");
        }
}

enum {
        N_PARTS = 4
};

/* Parts of a subject: "CN" or "O", and DER. */
typedef struct SubjectCase {
        struct {
                const char *type, *der;
                size_t length;
        } parts[N_PARTS];
        const char *name; /* NULL: refused */
        const char *groups[N_PARTS];
} SubjectCase;

#define PART(type, der) \
        { type, der, sizeof(der) - 1 }

static const SubjectCase subjects[] = {
        /* The name is not escaped as it would be in the text of a distinguished name. */
        { { PART("CN", "\x0c\x05"
                       "a+b@x"),
            PART("O", "\x0c\x06"
                      "ops,eu"),
            PART("O", "\x13\x05"
                      " #\"<;") },
          "a+b@x",
          { "ops,eu", " #\"<;" } },
        /* The last common name is used; an empty group is kept. */
        { { PART("CN", "\x0c\x03"
                       "joe"),
            PART("O", "\x0c\x00"),
            PART("CN", "\x16\x04"
                       "jane"),
            PART("O", "\x0c\x01"
                      "a") },
          "jane",
          { "", "a" } },
        { { PART("CN", "\x0c\x04"
                       "jane"),
            PART("CN", "\x0c\x00") },
          NULL,
          { NULL } },
        /* Other types of strings. */
        { { PART("CN", "\x14\x04"
                       "Ren\xe9"),
            PART("O", "\x1e\x06"
                      "\0a\0\xe9\x20\xac"),
            PART("O", "\x12\x03"
                      "007") },
          "Ren\xc3\xa9",
          { "a\xc3\xa9\xe2\x82\xac", "007" } },
        /* Unreadable data is not skipped. */
        { { PART("CN", "\x0c\x04"
                       "jane"),
            PART("O", "\x0c\x03"
                      "a\0b"),
            PART("O", "\x0c\x01"
                      "c") },
          NULL,
          { NULL } },
        { { PART("CN", "\x0c\x04"
                       "jane"),
            PART("O", "\x0c\x02"
                      "a\xff") },
          NULL,
          { NULL } },
        { { PART("CN", "\x0c\x04"
                       "jane"),
            PART("O", "\x1e\x02"
                      "\xd8\x00") },
          NULL,
          { NULL } },
        { { PART("CN", "\x0c\x04"
                       "jane"),
            PART("O", "\x1e\x03"
                      "\0a\0") },
          NULL,
          { NULL } },
        { { PART("CN", "\x0c\x04"
                       "jane"),
            PART("O", "\x1c\x04"
                      "\0\0\0a") },
          NULL,
          { NULL } },
        { { PART("CN", "\x14\x03"
                       "a\0b") },
          NULL,
          { NULL } },
        { { PART("O", "\x0c\x01"
                      "a") },
          NULL,
          { NULL } },
};

static gnutls_x509_crt_t make_subject_certificate(const SubjectCase *subject,
                                                  gnutls_privkey_t key) {
        gnutls_x509_crt_t certificate = start_certificate(public_key_of(key));

        for (size_t i = 0; i < N_PARTS && subject->parts[i].type; i++)
                REQUIRE(gnutls_x509_crt_set_dn_by_oid(certificate,
                                                      streq(subject->parts[i].type, "CN")
                                                              ? GNUTLS_OID_X520_COMMON_NAME
                                                              : GNUTLS_OID_X520_ORGANIZATION_NAME,
                                                      1, subject->parts[i].der,
                                                      (unsigned) subject->parts[i].length) >= 0);
        return certificate;
}

TEST(the_subject_of_a_client_is_read_as_in_go)
{
        for (size_t i = 0; i < N_ELEMENTS(subjects); i++) {
                const SubjectCase *subject = &subjects[i];
                gnutls_privkey_t key = make_curve_key();
                cleanup_with(api_user_done) ApiUser user = { 0 };
                cleanup_error Error error = ERROR_NULL;
                size_t n = 0;
                int r = authenticate_client(make_subject_certificate(subject, key), key,
                                            versions[0], &user, &error);

                EXPECT_EQ(r, subject->name ? 1 : -EACCES);
                if (!subject->name)
                        EXPECT(error.message && strstr(error.message, "the client certificate"));
                EXPECT_STREQ(user.name, subject->name);
                EXPECT_EQ(user.extra != NULL, r == 1);
                for (; user.groups && user.groups[n]; n++)
                        EXPECT_STREQ(user.groups[n], n < N_PARTS ? subject->groups[n] : NULL);
                EXPECT(n == N_PARTS || !subject->groups[n]);
        }
}

TEST(uid_and_certificate_hash_are_attributes_of_the_user)
{
        static const char uid_oid[] = "1.3.6.1.4.1.57683.2";
        static const char *const cases[][2] = {
                { "\x0c\x01"
                  "7",
                  "7" },
                { "\x0c\x00", NULL },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                gnutls_privkey_t key = make_curve_key();
                gnutls_x509_crt_t certificate = start_certificate(public_key_of(key));
                cleanup_with(api_user_done) ApiUser user = { 0 };
                cleanup_error Error error = ERROR_NULL;

                REQUIRE(gnutls_x509_crt_set_dn(certificate, "CN=jane", NULL) >= 0);
                REQUIRE(gnutls_x509_crt_set_dn_by_oid(certificate, uid_oid, 1, cases[i][0],
                                                      cases[i][1] ? 3 : 2) >= 0);
                EXPECT_EQ(authenticate_client(certificate, key, versions[0], &user, &error),
                          cases[i][1] ? 1 : -EACCES);
                EXPECT_STREQ(user.uid, cases[i][1]);
                EXPECT_EQ(user.extra && strstr(user.extra, "credential-id\":[\"X509SHA256="),
                          cases[i][1] != NULL);
        }
}

TEST(a_client_has_as_many_groups_as_its_certificate_names)
{
        enum {
                N_GROUPS = 100
        };
        gnutls_privkey_t key = make_curve_key();
        gnutls_x509_crt_t certificate = start_certificate(public_key_of(key));
        cleanup_with(api_user_done) ApiUser user = { 0 };
        cleanup_error Error error = ERROR_NULL;
        size_t n = 0;

        REQUIRE(gnutls_x509_crt_set_dn(certificate, "CN=jane", NULL) >= 0);
        for (unsigned i = 0; i < N_GROUPS; i++)
                REQUIRE(gnutls_x509_crt_set_dn_by_oid(
                                certificate, GNUTLS_OID_X520_ORGANIZATION_NAME, 0, "a", 1) >= 0);
        EXPECT_EQ(authenticate_client(certificate, key, versions[1], &user, &error), 1);
        while (user.groups && user.groups[n])
                n++;
        EXPECT_EQ(n, N_GROUPS);
}

/* ---- the proof of a handshake, for a signer that trusts nothing else ---- */

static gnutls_x509_crt_t make_client_certificate(gnutls_privkey_t key) {
        gnutls_x509_crt_t certificate = start_certificate(public_key_of(key));

        REQUIRE(gnutls_x509_crt_set_dn(certificate, "CN=jane", NULL) >= 0);
        return certificate;
}

/* Makes the proof of a client in the form in which it was sent; 'asked' contains it. */
static char *make_proof(const char *priorities, size_t *ret_length) {
        gnutls_privkey_t key = make_curve_key();
        cleanup_free char *ticket = NULL;
        char *copy;

        REQUIRE(prove_client(make_client_certificate(key), key, priorities, test_signer(), &ticket,
                             NULL) == 1);
        REQUIRE(asked.request[0] == SIGNER_PROVE);
        copy = malloc(asked.length);
        REQUIRE(copy);
        memcpy(copy, asked.request, asked.length);
        *ret_length = asked.length;
        return copy;
}

static bool is_refused(const char *packet, size_t length, const char *why) {
        char *answer;
        size_t n;
        bool is_refused;

        REQUIRE(signer_answer(test_signer(), packet, length, &answer, &n) == 0);
        is_refused = answer[0] == SIGNER_FAILED && (!why || strstr(answer, why));
        free(answer);
        return is_refused;
}

TEST(a_handshake_can_be_used_as_proof_only_once)
{
        for (size_t i = 0; i < N_ELEMENTS(versions); i++) {
                size_t length;
                cleanup_free char *proof = make_proof(versions[i], &length);

                EXPECT(is_refused(proof, length, "not a new one"));
        }
}

TEST(a_modified_handshake_is_not_accepted_as_proof)
{
        for (size_t i = 0; i < N_ELEMENTS(versions); i++) {
                size_t length;
                cleanup_free char *proof = make_proof(versions[i], &length);

                for (size_t at = 1 + sizeof(SignerProof); at < length; at++) {
                        proof[at] = (char) (proof[at] ^ 1);
                        EXPECT(is_refused(proof, length, NULL));
                        EXPECT(!is_refused(proof, length, "not a new one"));
                        proof[at] = (char) (proof[at] ^ 1);
                }
                for (size_t n = 0; n < length; n++)
                        EXPECT(is_refused(proof, n, NULL));
        }
}

/* The server chooses the nonce: otherwise the proof of an old handshake would be accepted. */
TEST(a_proof_with_a_nonce_of_another_signer_is_refused)
{
        cleanup_with(signer_freep) Signer *other = NULL;
        cleanup_free char *material = print_pem_material(authority(), NULL);
        size_t length;
        cleanup_free char *proof = make_proof(versions[0], &length);
        char *answer;
        size_t n;

        REQUIRE(signer_new(&other) == 0);
        signer_use_material(other, ticket_key, material, strlen(material));
        REQUIRE(signer_answer(other, proof, length, &answer, &n) == 0);
        EXPECT(answer[0] == SIGNER_FAILED && strstr(answer, "not a new one"));
        free(answer);
}

TEST(a_second_client_hello_is_part_of_the_proof)
{
        static const char priorities[] =
                "NORMAL:-VERS-ALL:+VERS-TLS1.3:-GROUP-ALL:+GROUP-FFDHE2048:+GROUP-SECP521R1:"
                "%DISABLE_TLS13_COMPAT_MODE";
        gnutls_privkey_t key = make_curve_key();
        cleanup_free char *ticket = NULL;

        EXPECT_EQ(prove_client(make_client_certificate(key), key, priorities, test_signer(),
                               &ticket, NULL),
                  1);
}

TEST(a_client_without_a_certificate_has_no_ticket)
{
        for (size_t i = 0; i < N_ELEMENTS(versions); i++) {
                cleanup_free char *ticket = NULL;

                EXPECT_EQ(prove_client(NULL, NULL, versions[i], test_signer(), &ticket, NULL), 0);
                EXPECT(!ticket);
        }
}

TEST(a_signer_that_does_not_answer_fails_the_handshake)
{
        cleanup_with(tls_credentials_unrefp) TlsCredentials *credentials = make_credentials();
        Client client = { 0 };
        gnutls_session_t session;

        asked.is_deaf = true;
        client_start(&client, versions[0], NULL);
        EXPECT(shake_hands(&client, credentials, &session) < 0);
        asked.is_deaf = false;
        tls_session_end(session);
        close_fd(client.fds[1]);
        client_done(&client);
}

/* ---- signatures of the signer ---- */

static const struct {
        gnutls_pk_algorithm_t algorithm;
        unsigned bits;
        gnutls_sign_algorithm_t sign;
} key_kinds[] = {
        { GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
          GNUTLS_SIGN_ECDSA_SECP256R1_SHA256 },
        { GNUTLS_PK_RSA, 2048, GNUTLS_SIGN_RSA_PSS_RSAE_SHA256 },
        { GNUTLS_PK_EDDSA_ED25519, 256, GNUTLS_SIGN_EDDSA_ED25519 },
};

static Signer *make_signer_of(size_t kind, bool is_for_clients) {
        Pair pair = { .key = make_key(key_kinds[kind].algorithm, key_kinds[kind].bits) };
        cleanup_free char *material = NULL, *ca = NULL;
        gnutls_datum_t ca_pem;
        Signer *signer;

        REQUIRE(gnutls_x509_crt_export2(authority()->certificate, GNUTLS_X509_FMT_PEM, &ca_pem) >=
                0);
        ca = text_of_datum(&ca_pem);
        pair.certificate = start_certificate(public_key_of(pair.key));
        REQUIRE(gnutls_x509_crt_set_dn(pair.certificate, "CN=server", NULL) >= 0);
        if (is_for_clients)
                REQUIRE(gnutls_x509_crt_set_key_purpose_oid(pair.certificate,
                                                            GNUTLS_KP_TLS_WWW_CLIENT, 0) >= 0);
        sign_certificate(pair.certificate, authority());
        material = print_pem_material(&pair, ca);
        REQUIRE(signer_new(&signer) == 0);
        signer_use_material(signer, ticket_key, material, strlen(material));
        gnutls_x509_crt_deinit(pair.certificate);
        gnutls_privkey_deinit(pair.key);
        return signer;
}

TEST(keys_of_each_kind_serve_both_versions)
{
        for (size_t i = 0; i < 2 * N_ELEMENTS(key_kinds); i++) {
                cleanup_with(signer_freep) Signer *signer = make_signer_of(i / 2, false);
                cleanup_free char *ticket = NULL;

                EXPECT_EQ(prove_client(NULL, NULL, versions[i % 2], signer, &ticket, NULL), 0);
        }
}

static void read_certificate_hash(Signer *signer, char ret[SHA256_HEX_SIZE]) {
        static const char request[] = { SIGNER_GET_MATERIAL };
        cleanup_free char *json = NULL;
        cleanup_json json_t *object = NULL;
        const char *certificate;
        size_t length;

        REQUIRE(ask_test_signer(signer, request, 1, &json, &length, NULL) == 0);
        object = json_loads(json, 0, NULL);
        certificate = json_string_value(json_object_get(object, "certificate"));
        sha256_hex(certificate, strlen(certificate), ret);
}

static bool has_signed(Signer *signer, SignedThing thing, gnutls_sign_algorithm_t algorithm,
                       const char *data, size_t length) {
        SignerRequest request = { .thing = thing, .algorithm = algorithm };
        char packet[1 + sizeof(request) + 600] = { SIGNER_SIGN };
        char *answer;
        bool is_done;
        size_t n;

        REQUIRE(length <= 600);
        read_certificate_hash(signer, request.certificate);
        memcpy(packet + 1, &request, sizeof(request));
        memcpy(packet + 1 + sizeof(request), data, length);
        REQUIRE(signer_answer(signer, packet, 1 + sizeof(request) + length, &answer, &n) == 0);
        is_done = answer[0] == SIGNER_DONE;
        free(answer);
        return is_done;
}

/* Invalid material changes nothing, and handshakes in progress keep the previous certificate. */
TEST(a_handshake_continues_while_the_certificate_changes)
{
        cleanup_with(signer_freep) Signer *signer = make_signer_of(0, false);
        cleanup_with(tls_credentials_unrefp) TlsCredentials *credentials =
                make_credentials_of(signer);
        cleanup_free char *material = print_pem_material(authority(), NULL);

        for (unsigned i = 0; i < 3; i++) {
                Client client = { 0 };
                gnutls_session_t session;

                client_start(&client, versions[i % 2], NULL);
                EXPECT_EQ(shake_hands(&client, credentials, &session), 0);
                tls_session_end(session);
                close_fd(client.fds[1]);
                client_done(&client);
                if (i == 0)
                        signer_use_material(signer, ticket_key, "{}", 2);
                else
                        signer_use_material(signer, ticket_key, material, strlen(material));
        }
}

TEST(the_signer_signs_only_handshakes)
{
        static const char text[600] = "a certificate, or what a client signs";
        char parameters[100] = { [64] = 3 };

        for (size_t i = 0; i < N_ELEMENTS(key_kinds); i++) {
                cleanup_with(signer_freep) Signer *signer = make_signer_of(i, false);
                cleanup_with(signer_freep) Signer *credential = make_signer_of(i, true);
                gnutls_sign_algorithm_t sign = key_kinds[i].sign;
                bool is_eddsa = sign == GNUTLS_SIGN_EDDSA_ED25519;

                EXPECT(has_signed(signer, SIGNED_TLS13, sign, text, 32));
                EXPECT(!has_signed(signer, SIGNED_TLS13, sign, text, 65));
                EXPECT(!has_signed(signer, SIGNED_TLS12, sign, text, 600));
                EXPECT(!has_signed(signer, SIGNED_TLS12, sign, text, 100));
                EXPECT(has_signed(signer, SIGNED_TLS12, sign, parameters, sizeof(parameters)));
                EXPECT(!has_signed(signer, (SignedThing) 3, sign, text, 32));
                EXPECT(!has_signed(signer, SIGNED_TLS12_HASH, GNUTLS_SIGN_RSA_RAW, text, 51));
                EXPECT(!has_signed(signer, SIGNED_TLS12_HASH, sign, text, 33));
                EXPECT_EQ(has_signed(signer, SIGNED_TLS12_HASH, sign, text, 32), !is_eddsa);
                EXPECT(!has_signed(credential, SIGNED_TLS12_HASH, sign, text, 32));
        }
}

TEST(a_certificate_with_another_key_is_not_used)
{
        cleanup_with(signer_freep) Signer *signer = NULL;
        Pair mixed = { .certificate = authority()->certificate, .key = make_curve_key() };
        cleanup_free char *material = print_pem_material(&mixed, NULL);
        static const char request[] = { SIGNER_GET_MATERIAL };
        char *answer;
        size_t n;

        REQUIRE(signer_new(&signer) == 0);
        signer_use_material(signer, ticket_key, material, strlen(material));
        REQUIRE(signer_answer(signer, request, 1, &answer, &n) == 0);
        EXPECT(strstr(answer, "the serving certificate and its key"));
        EXPECT(!strstr(answer, "\"certificate\""));
        free(answer);
        gnutls_privkey_deinit(mixed.key);
}
