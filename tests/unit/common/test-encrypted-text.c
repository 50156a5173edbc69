/* SPDX-License-Identifier: Apache-2.0 */
#include "common/encrypted-text.h"

#include "common/cleanup.h"
#include "tests/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t key[CHACHA_KEY_SIZE] = { 1, 2, 3 }, other_key[CHACHA_KEY_SIZE] = { 1, 2, 4 };

static char *encrypt(const char *name, const char *text) {
        char *result = NULL;
        int r = encrypt_text(key, name, text, &result);

        EXPECT_EQ(r, 0);
        return result;
}

TEST(encrypted_text_is_one_line_and_can_be_decrypted)
{
        static const char *const texts[] = { "", "a", "{\"kind\": \"Secret\"}\n", "two\nlines" };

        for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
                cleanup_free char *line = encrypt("objects/one", texts[i]), *again = NULL;

                EXPECT(is_encrypted_text(line));
                EXPECT_EQ(strlen(line), encrypted_text_length(strlen(texts[i])));
                EXPECT(strchr(line, '\n') == line + strlen(line) - 1);
                EXPECT_EQ(decrypt_text(key, "objects/one", line, &again), 0);
                EXPECT_STREQ(again, texts[i]);
        }
        EXPECT(!is_encrypted_text("{\"kind\": \"Secret\"}"));
}

TEST(encrypted_text_differs_each_time)
{
        cleanup_free char *one = encrypt("a", "the same"), *two = encrypt("a", "the same");

        EXPECT(strcmp(one, two) != 0);
}

TEST(encrypted_text_is_decrypted_only_with_its_key_and_its_name)
{
        cleanup_free char *line = encrypt("objects/one", "secret");
        char *again = NULL;

        EXPECT_EQ(decrypt_text(other_key, "objects/one", line, &again), -EBADMSG);
        EXPECT_EQ(decrypt_text(key, "objects/two", line, &again), -EBADMSG);
        EXPECT_EQ(decrypt_text(key, "", line, &again), -EBADMSG);
}

TEST(encrypted_text_that_was_modified_or_truncated_anywhere_is_refused)
{
        cleanup_free char *line = encrypt("objects/one", "secret");
        const size_t prefix = strlen(ENCRYPTED_TEXT_PREFIX);
        char *again = NULL;

        /* The last digit before the padding has unused bits, so it is not tested. */
        for (size_t i = 0; i < strlen(line) - 4; i++) {
                char digit = line[i];

                line[i] = digit == 'A' ? 'B' : 'A';
                EXPECT_EQ(decrypt_text(key, "objects/one", line, &again), -EBADMSG);
                line[i] = digit;
        }
        for (size_t length = 0; length < strlen(line) - 4; length++) {
                cleanup_free char *cut = strndup(line, length);

                EXPECT_EQ(decrypt_text(key, "objects/one", cut, &again), -EBADMSG);
        }
        line[prefix] = '*';
        EXPECT_EQ(decrypt_text(key, "objects/one", line, &again), -EBADMSG);
        EXPECT_EQ(decrypt_text(key, "objects/one", "", &again), -EBADMSG);
}
