/* SPDX-License-Identifier: Apache-2.0 */
#include "common/ed25519.h"

#include "common/base64.h"
#include "tests/test.h"

#include <errno.h>
#include <stdio.h>

/* From RFC 8032, section 7.1, TEST 2. */
static const uint8_t rfc_key[ED25519_KEY_SIZE] = {
        0x3d, 0x40, 0x17, 0xc3, 0xe8, 0x43, 0x89, 0x5a, 0x92, 0xb7, 0x0a,
        0xa7, 0x4d, 0x1b, 0x7e, 0xbc, 0x9c, 0x98, 0x2c, 0xcf, 0x2e, 0xc4,
        0x96, 0x8c, 0xc0, 0xcd, 0x55, 0xf1, 0x2a, 0xf4, 0x66, 0x0c,
};
static const uint8_t rfc_signature[ED25519_SIGNATURE_SIZE] = {
        0x92, 0xa0, 0x09, 0xa9, 0xf0, 0xd4, 0xca, 0xb8, 0x72, 0x0e, 0x82, 0x0b, 0x5f,
        0x64, 0x25, 0x40, 0xa2, 0xb2, 0x7b, 0x54, 0x16, 0x50, 0x3f, 0x8f, 0xb3, 0x76,
        0x22, 0x23, 0xeb, 0xdb, 0x69, 0xda, 0x08, 0x5a, 0xc1, 0xe4, 0x3e, 0x15, 0x99,
        0x6e, 0x45, 0x8f, 0x36, 0x13, 0xd0, 0xf1, 0x1d, 0x8c, 0x38, 0x7b, 0x2e, 0xae,
        0xb4, 0x30, 0x2a, 0xee, 0xb0, 0x0d, 0x29, 0x16, 0x12, 0xbb, 0x0c, 0x00,
};

/* "openssl genpkey -algorithm ed25519"; the key of TEST 2. */
static const char rfc_pem[] = "-----BEGIN PRIVATE KEY-----\n"
                              "MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n"
                              "-----END PRIVATE KEY-----\n";

TEST(a_signature_is_valid_only_for_its_key_and_unchanged_bytes)
{
        uint8_t key[ED25519_KEY_SIZE], signature[ED25519_SIGNATURE_SIZE];

        EXPECT(ed25519_verify(rfc_key, "\x72", 1, rfc_signature));
        EXPECT(!ed25519_verify(rfc_key, "\x73", 1, rfc_signature));
        EXPECT(!ed25519_verify(rfc_key, "\x72\x72", 2, rfc_signature));
        EXPECT(!ed25519_verify(rfc_key, "", 0, rfc_signature));
        for (size_t i = 0; i < sizeof(signature); i++) {
                memcpy(signature, rfc_signature, sizeof(signature));
                signature[i] ^= 1;
                EXPECT(!ed25519_verify(rfc_key, "\x72", 1, signature));
        }
        memcpy(key, rfc_key, sizeof(key));
        key[0] ^= 1;
        EXPECT(!ed25519_verify(key, "\x72", 1, rfc_signature));
}

TEST(signing_matches_the_test_vector_of_the_standard)
{
        uint8_t key[ED25519_KEY_SIZE], signature[ED25519_SIGNATURE_SIZE];
        cleanup_error Error error = ERROR_NULL, other = ERROR_NULL;

        REQUIRE(ed25519_sign(rfc_pem, "\x72", 1, signature, key, &error) == 0);
        EXPECT(memcmp(key, rfc_key, sizeof(key)) == 0);
        EXPECT(memcmp(signature, rfc_signature, sizeof(signature)) == 0);
        EXPECT(ed25519_sign("no key", "\x72", 1, signature, key, &other) < 0);
        EXPECT_STREQ(other.message, "is not a private key in PEM without a password");
}

/* Returns the bytes after a header, in base64. */
static const char *encode(const char *head, size_t n_head, const void *data, size_t length) {
        static char text[256];
        char bytes[128];

        memcpy(bytes, head, n_head);
        memcpy(bytes + n_head, data, length);
        base64_encode(bytes, n_head + length, text);
        return text;
}

TEST(keys_are_read_raw_as_der_and_in_minisign_format)
{
        uint8_t key[ED25519_KEY_SIZE];
        const struct {
                const char *head;
                size_t n_head, length;
                int r;
        } cases[] = {
                { "", 0, 32, 0 },
                { "\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12, 32, 0 },
                { "Ed12345678", 10, 32, 0 },
                { "\x30\x2a\x30\x05\x06\x03\x2b\x65\x71\x03\x21\x00", 12, 32, -EINVAL },
                { "ED12345678", 10, 32, -EINVAL },
                { "", 0, 31, -EINVAL },
                { "x", 1, 32, -EINVAL },
                { "", 0, 0, -EINVAL },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                memset(key, 0, sizeof(key));
                EXPECT_EQ(ed25519_key_parse(
                                  encode(cases[i].head, cases[i].n_head, rfc_key, cases[i].length),
                                  key),
                          cases[i].r);
                EXPECT_EQ(memcmp(key, rfc_key, sizeof(key)) == 0, cases[i].r == 0);
        }
        EXPECT_EQ(ed25519_key_parse("not base64!", key), -EINVAL);
}

TEST(signature_files_are_raw_or_have_one_signature_per_line)
{
        uint8_t found[ED25519_SIGNATURES_MAX][ED25519_SIGNATURE_SIZE];
        char file[4096] = "untrusted comment: signature from minisign\n";
        size_t n = strlen(file);

        EXPECT_EQ(ed25519_signatures_parse((const char *) rfc_signature, 64, found), 1);
        EXPECT(memcmp(found[0], rfc_signature, 64) == 0);
        n += (size_t) snprintf(file + n, sizeof(file) - n, "%s\ntrusted comment: x\n\n",
                               encode("Ed12345678", 10, rfc_signature, 64));
        n += (size_t) snprintf(file + n, sizeof(file) - n, "%s\n",
                               encode("ED12345678", 10, rfc_signature, 64)); /* of a hash */
        (void) snprintf(file + n, sizeof(file) - n, "%s", encode("", 0, rfc_signature, 64));
        memset(found, 0, sizeof(found));
        EXPECT_EQ(ed25519_signatures_parse(file, strlen(file), found), 2);
        EXPECT(memcmp(found[0], rfc_signature, 64) == 0);
        EXPECT(memcmp(found[1], rfc_signature, 64) == 0);
        EXPECT_EQ(ed25519_signatures_parse("", 0, found), 0);
        EXPECT_EQ(ed25519_signatures_parse("\n\n", 2, found), 0);
        for (n = 0; n + 90 < sizeof(file);)
                n += (size_t) snprintf(file + n, sizeof(file) - n, "%s\n",
                                       encode("", 0, rfc_signature, 64));
        EXPECT_EQ(ed25519_signatures_parse(file, strlen(file), found), ED25519_SIGNATURES_MAX);
}
