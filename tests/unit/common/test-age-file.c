/* SPDX-License-Identifier: Apache-2.0 */
#include "common/age-file.h"

#include "common/buffer.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <stdio.h>

/* Made by age-keygen and age 1.1.1. */
static const char identity_text[] =
        "AGE-SECRET-KEY-16DE8V8NF5XKRVN8K240XFCQSGEQPM97ECD0S8FHL2VJ8HWUDKFWQL4C5DM";
static const char recipient_text[] =
        "age1pd0sq93apwac3h6p4w5v5ra730xl8455zykcnhweqd272wkpxfnqhwvmns";
static const char hello_age[] = "-----BEGIN AGE ENCRYPTED FILE-----\n"
                                "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSAyUW9pSnB2RVI2Z3E2VFFS\n"
                                "c0o5L3QwNGZ5TlMzcUpESzVrbDFobmZ0am5rCkJWeWF5Uy94a0dvL2YySlIvQnRJ\n"
                                "bTN2WXkrZkRyV3AyaWQyK08xVmZPMWMKLS0tIGFScFVrY0gzVDIvcVBqTThwWmZx\n"
                                "QUlZQ0JWaVJJMDkrSHp3eFI4bzZwVTgKiZd0tdmK98P4XWYv3j7/CslS1GVcS7/0\n"
                                "H/lAY9h+G4NkAMsYEH4i2pY=\n"
                                "-----END AGE ENCRYPTED FILE-----\n";

static AgeKey known_identity(void) {
        AgeKey key = { 0 };

        EXPECT_EQ(age_identity_parse(identity_text, &key), 0);
        return key;
}

TEST(age_recipient_is_that_of_its_identity)
{
        AgeKey identity = known_identity(), recipient, parsed;
        char text[AGE_RECIPIENT_SIZE], again[AGE_IDENTITY_SIZE];

        age_identity_format(&identity, again);
        EXPECT_STREQ(again, identity_text);
        age_identity_recipient(&identity, &recipient);
        age_recipient_format(&recipient, text);
        EXPECT_STREQ(text, recipient_text);
        EXPECT_EQ(age_recipient_parse(text, &parsed), 0);
        EXPECT(memcmp(&parsed, &recipient, sizeof(parsed)) == 0);
}

TEST(age_recipient_with_an_error_is_refused)
{
        char text[sizeof(recipient_text)];
        AgeKey key;

        for (size_t i = 0; i < strlen(recipient_text); i++) {
                memcpy(text, recipient_text, sizeof(text));
                text[i] = text[i] == 'q' ? 'p' : 'q';
                EXPECT_EQ(age_recipient_parse(text, &key), -EINVAL);
                text[i] = '\0';
                EXPECT_EQ(age_recipient_parse(text, &key), -EINVAL);
        }
        EXPECT_EQ(age_recipient_parse("", &key), -EINVAL);
        EXPECT_EQ(age_recipient_parse(identity_text, &key), -EINVAL);
        EXPECT_EQ(age_recipient_parse("age1yubikey1qwt50d05nh5vutpdzmlg5wn80xq5negm4uj9ghv0snvdd3yy"
                                      "cqfdsnyyynj",
                                      &key),
                  -EINVAL);
}

TEST(file_that_age_has_made_is_decrypted)
{
        AgeKey keys[2] = { { { 1 } }, known_identity() };
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *text = NULL;
        size_t length = 0;

        EXPECT(age_is_file(hello_age, strlen(hello_age)));
        EXPECT_EQ(age_count_recipients(hello_age, strlen(hello_age), &error), 1);
        EXPECT_EQ(age_decrypt(hello_age, strlen(hello_age), keys, 2, &text, &length, &error), 0);
        EXPECT_EQ(length, 9);
        EXPECT_STREQ(text, "hello age");
}

TEST(file_for_other_recipients_is_refused_with_a_reason)
{
        const AgeKey other = { { 1 } };
        cleanup_error Error error = ERROR_NULL;
        char *text = NULL;
        size_t length;

        EXPECT_EQ(age_decrypt(hello_age, strlen(hello_age), &other, 1, &text, &length, &error),
                  -ENOKEY);
        EXPECT_STREQ(error.message,
                     "is encrypted for 1 recipients of X25519, and none of them is an "
                     "identity of this node");
        EXPECT(!text);
}

TEST(file_that_was_modified_or_truncated_anywhere_is_refused)
{
        const AgeKey key = known_identity();
        char copy[sizeof(hello_age)];
        size_t end = strlen(hello_age);

        for (size_t i = 0; i < end; i++) {
                char *text = NULL;
                size_t length;

                memcpy(copy, hello_age, sizeof(copy));
                copy[i] = copy[i] == 'A' ? 'B' : 'A';
                EXPECT(age_decrypt(copy, end, &key, 1, &text, &length, NULL) < 0);
                if (i < end - 1) /* only the last newline may be missing */
                        EXPECT(age_decrypt(hello_age, i, &key, 1, &text, &length, NULL) < 0);
        }
}

TEST(armor_may_have_crlf_line_ends_and_surrounding_white_space)
{
        const AgeKey key = known_identity();
        cleanup_buffer Buffer copy = { 0 };
        cleanup_free char *text = NULL;
        size_t length;

        EXPECT_EQ(buffer_append(&copy, " \r\n", 3, SIZE_MAX), 0);
        for (const char *p = hello_age; *p; p++)
                EXPECT_EQ(
                        buffer_append(&copy, *p == '\n' ? "\r\n" : p, *p == '\n' ? 2 : 1, SIZE_MAX),
                        0);
        EXPECT_EQ(age_decrypt(copy.data, copy.length, &key, 1, &text, &length, NULL), 0);
        EXPECT_STREQ(text, "hello age");
}

static void expect_round_trip(const char *data, size_t length, const AgeKey *recipients, size_t n,
                              const AgeKey *identity) {
        cleanup_free char *file = NULL, *text = NULL;
        size_t text_length = 0;

        EXPECT_EQ(age_encrypt(data, length, recipients, n, &file), 0);
        EXPECT_EQ(age_count_recipients(file, strlen(file), NULL), (int) n);
        EXPECT_EQ(age_decrypt(file, strlen(file), identity, 1, &text, &text_length, NULL), 0);
        EXPECT_EQ(text_length, length);
        EXPECT(text && memcmp(text, data, length) == 0);
}

TEST(each_recipient_can_decrypt_an_encrypted_file)
{
        static const size_t sizes[] = { 0, 1, 47, 65535, 65536, 65537, 131072, 200000 };
        AgeKey identities[3], recipients[3];
        cleanup_free char *data = malloc(200000);

        for (size_t i = 0; i < 3; i++) {
                EXPECT_EQ(age_identity_make(&identities[i]), 0);
                age_identity_recipient(&identities[i], &recipients[i]);
        }
        for (size_t i = 0; i < 200000; i++)
                data[i] = (char) (i * 7 % 251);
        for (size_t i = 0; i < N_ELEMENTS(sizes); i++)
                for (size_t k = 0; k < 3; k++)
                        expect_round_trip(data, sizes[i], recipients, 3, &identities[k]);
}

TEST(payload_without_its_last_chunk_is_refused)
{
        cleanup_free char *data = calloc(1, 131072), *file = NULL, *text = NULL;
        const AgeKey identity = known_identity();
        AgeKey recipient;
        char *line;
        size_t length;

        age_identity_recipient(&identity, &recipient);
        EXPECT_EQ(age_encrypt(data, 131072, &recipient, 1, &file), 0);
        /* The file is cut after some lines of 48 bytes, regardless of the position within a
         * chunk. */
        line = file + strlen(file) - 2000;
        line = strchr(line, '\n') + 1;
        memcpy(line, AGE_ARMOR_END, sizeof(AGE_ARMOR_END));
        EXPECT_EQ(age_decrypt(file, strlen(file), &identity, 1, &text, &length, NULL), -EBADMSG);
}
