/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/pull/document.h"
#include "agent/image-helper/signature/signature-check.h"
#include "common/base64.h"
#include "common/file.h"
#include "common/public-key.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>

#define DIRECTORY SOURCE_DIR "/tests/unit/image-helper/signatures/"
#define HEX       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define IMAGE     "sha256:" HEX
#define OTHER     "sha256:fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define START     "SignatureValidationFailed: image " IMAGE ": the rule: "

static char *read_signature_file(const char *name, size_t *ret_length) {
        cleanup_free char *path = path_join(DIRECTORY, name);
        char *data = NULL;

        REQUIRE(path && read_file_at(AT_FDCWD, path, MIB, &data, ret_length) >= 0);
        return data;
}

/* A bundle, or the payload with a signature. */
static void add_signature(SignatureSet *set, const char *name) {
        bool is_bundle = strstr(name, ".json");
        size_t length, payload_length;
        cleanup_free char *data = read_signature_file(name, &length);
        cleanup_free char *payload = read_signature_file("payload.json", &payload_length);
        char text[1024];

        REQUIRE(is_bundle || length < 512);
        if (is_bundle) {
                REQUIRE(signature_set_add(set, data, length, NULL) == 0);
                return;
        }
        base64_encode(data, length, text);
        REQUIRE(signature_set_add(set, payload, payload_length, text) == 0);
}

static json_t *make_requirement(const char *key, const char *identity) {
        cleanup_free char *names = strdup(key);
        json_t *keys = json_array();
        char *rest = names;

        for (const char *name; (name = strsep(&rest, " "));) {
                size_t length;
                cleanup_free char *pem = read_signature_file(name, &length);

                REQUIRE(json_array_append_new(
                                keys, json_pack("{s:s, s:s}", "name", name, "pem", pem)) == 0);
        }
        return json_pack("{s:s, s:o, s:{s:s}}", "rule", "the rule", "keys", keys, "identity",
                         "type", identity);
}

static int check_signatures(const char *signatures, const char *keys, const char *identity,
                            const char *digest, Error *reterr) {
        cleanup_with(signature_set_done) SignatureSet set = { 0 };
        cleanup_free char *names = strdup(signatures);
        cleanup_json json_t *policy =
                json_pack("{s:s, s:[o]}", "reference", "example.com/team/app:1", "requirements",
                          make_requirement(keys, identity));
        char *rest = names;

        for (const char *name; (name = strsep(&rest, " "));)
                if (name[0])
                        add_signature(&set, name);
        return signatures_check(policy, (const char *[]){ digest, NULL }, &set, reterr);
}

TEST(a_signature_is_accepted_if_key_image_and_name_match_the_rule)
{
        static const struct {
                const char *signatures, *keys, *identity, *message;
        } cases[] = {
                { "ecdsa.sig", "ecdsa.pub", "matchRepository", NULL },
                { "ed25519.sig", "ed25519.pub", "matchRepository", NULL },
                { "ecdsa.bundle.json", "ecdsa.pub", "matchRepository", NULL },
                { "ed25519.bundle.json", "ed25519.pub", "matchRepository", NULL },
                { "named.bundle.json", "ecdsa.pub", "matchExact", NULL },
                { "ed25519.sig ecdsa.sig", "ecdsa.pub", "matchRepository", NULL },
                { "attestation.bundle.json ecdsa.sig", "ecdsa.pub", "matchRepository", NULL },
                { "ecdsa.sig", "ed25519.pub ecdsa.pub", "matchRepository", NULL },
                { "", "ecdsa.pub", "matchRepository", START "it is not signed" },
                { "ecdsa.sig", "ed25519.pub", "matchRepository",
                  START "it is signed, but not by a key of this rule" },
                { "ed25519.sig", "ecdsa.pub", "matchRepository",
                  START "it is signed, but not by a key of this rule" },
                { "ecdsa.bundle.json", "ed25519.pub", "matchRepository",
                  START "it is signed, but not by a key of this rule" },
                { "ecdsa.sig", "ecdsa.pub", "matchExact",
                  START "it is signed as 'example.com/team/app', which matchExact does not accept "
                        "for 'example.com/team/app:1'" },
                { "attestation.bundle.json", "ecdsa.pub", "matchRepository",
                  START "its predicate is 'https://slsa.dev/provenance/v1', not a signature" },
                { "keyless.bundle.json", "ecdsa.pub", "matchRepository",
                  START "it was made without a key (Fulcio, Rekor), which is not supported" },
                { "p384.sig", "p384.pub", "matchRepository",
                  START "p384.pub: is neither a key of ECDSA P-256 nor of Ed25519" },
                { "ecdsa.sig", "payload.json", "matchRepository",
                  START "payload.json: is not a public key in PEM" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;

                EXPECT_EQ(check_signatures(cases[i].signatures, cases[i].keys, cases[i].identity,
                                           IMAGE, &error),
                          cases[i].message ? -EKEYREJECTED : 0);
                EXPECT_STREQ(error.message, cases[i].message);
        }
}

TEST(a_signature_of_another_image_is_not_accepted)
{
        static const char *const signatures[] = { "ecdsa.sig", "ecdsa.bundle.json" };

        for (size_t i = 0; i < N_ELEMENTS(signatures); i++) {
                cleanup_error Error error = ERROR_NULL;

                EXPECT_EQ(check_signatures(signatures[i], "ecdsa.pub", "matchRepository", OTHER,
                                           &error),
                          -EKEYREJECTED);
                EXPECT_STREQ(error.message,
                             "SignatureValidationFailed: image " OTHER
                             ": the rule: the signature is of another image, " IMAGE);
        }
}

TEST(signatures_that_were_not_read_are_mentioned)
{
        static const struct {
                const char *signature, *message;
        } cases[] = {
                { NULL, START "it is not signed; not all of its signatures were read, as they are "
                              "too many" },
                { "ed25519.sig", START "it is signed, but not by a key of this rule; not all of "
                                       "its signatures were read, as they are too many" },
        };
        cleanup_json json_t *policy =
                json_pack("{s:s, s:[o]}", "reference", "example.com/team/app:1", "requirements",
                          make_requirement("ecdsa.pub", "matchRepository"));

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(signature_set_done) SignatureSet set = { .is_cut = true };
                cleanup_error Error error = ERROR_NULL;

                if (cases[i].signature)
                        add_signature(&set, cases[i].signature);
                EXPECT_EQ(signatures_check(policy, (const char *[]){ IMAGE, NULL }, &set, &error),
                          -EKEYREJECTED);
                EXPECT_STREQ(error.message, cases[i].message);
        }
}

TEST(every_requirement_must_be_met)
{
        cleanup_with(signature_set_done) SignatureSet set = { 0 };
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *policy =
                json_pack("{s:s, s:[o, o]}", "reference", "example.com/team/app:1", "requirements",
                          make_requirement("ecdsa.pub", "matchRepository"),
                          make_requirement("ed25519.pub", "matchRepository"));
        const char *const digests[] = { OTHER, IMAGE, NULL };

        add_signature(&set, "ecdsa.sig");
        EXPECT_EQ(signatures_check(policy, digests, &set, &error), -EKEYREJECTED);
        add_signature(&set, "ed25519.bundle.json");
        EXPECT_EQ(signatures_check(policy, digests, &set, NULL), 0);
}

/* A change of any byte of the signed data or of the signature is detected. */
TEST(a_signature_of_modified_bytes_is_not_accepted)
{
        size_t length, payload_length, key_length;
        cleanup_free char *signature = read_signature_file("ecdsa.sig", &length);
        cleanup_free char *payload = read_signature_file("payload.json", &payload_length);
        cleanup_free char *pem = read_signature_file("ecdsa.pub", &key_length);
        cleanup_with(public_key_freep) PublicKey *key = NULL;

        REQUIRE(public_key_parse(pem, &key, NULL) == 0);
        EXPECT(public_key_verify(key, payload, payload_length, signature, length));
        for (size_t i = 0; i < payload_length; i++) {
                payload[i] ^= 1;
                EXPECT(!public_key_verify(key, payload, payload_length, signature, length));
                payload[i] ^= 1;
        }
        for (size_t i = 0; i < length; i++) {
                signature[i] ^= 1;
                EXPECT(!public_key_verify(key, payload, payload_length, signature, length));
                signature[i] ^= 1;
        }
}

TEST(payloads_with_unknown_or_invalid_members_are_refused)
{
        static const char *const payloads[] = {
                "",
                "[]",
                "{}",
                "{\"critical\":{}}",
                "{\"critical\":{\"identity\":{\"docker-reference\":\"a\"},\"image\":"
                "{\"docker-manifest-digest\":\"" IMAGE "\"},\"type\":\"atomic container "
                "signature\"}}",
                "{\"critical\":{\"identity\":{\"docker-reference\":\"a\"},\"image\":"
                "{\"docker-manifest-digest\":\"sha512:00\"},\"type\":\"cosign container image "
                "signature\"}}",
                "{\"critical\":{\"identity\":{\"docker-reference\":\"\"},\"image\":"
                "{\"docker-manifest-digest\":\"" IMAGE "\"},\"type\":\"cosign container image "
                "signature\"}}",
                "{\"critical\":{\"identity\":{\"docker-reference\":\"a\",\"x\":1},\"image\":"
                "{\"docker-manifest-digest\":\"" IMAGE "\"},\"type\":\"cosign container image "
                "signature\"}}",
                "{\"critical\":{\"x\":1,\"identity\":{\"docker-reference\":\"a\"},\"image\":"
                "{\"docker-manifest-digest\":\"" IMAGE "\"},\"type\":\"cosign container image "
                "signature\"}}",
        };

        for (size_t i = 0; i < N_ELEMENTS(payloads); i++) {
                const SignedContent content = { .bytes = (char *) (uintptr_t) payloads[i],
                                                .length = strlen(payloads[i]) };
                cleanup_with(signature_claims_done) SignatureClaims claims = { 0 };
                cleanup_error Error error = ERROR_NULL;

                EXPECT_EQ(signature_claims_parse(&content, &claims, &error), -EBADMSG);
                EXPECT(error.message != NULL);
        }
}

TEST(the_number_of_signatures_is_limited)
{
        cleanup_with(signature_set_done) SignatureSet set = { 0 };

        for (size_t i = 0; i < SIGSTORE_SIGNATURES_MAX; i++)
                EXPECT_EQ(signature_set_add(&set, "x", 1, "x"), 0);
        EXPECT(!set.is_cut);
        EXPECT_EQ(signature_set_add(&set, "x", 1, "x"), 0);
        EXPECT(set.is_cut);
        EXPECT_EQ(set.n, SIGSTORE_SIGNATURES_MAX);
}
