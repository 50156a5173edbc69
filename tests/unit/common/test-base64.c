/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base64.h"

#include "common/cleanup.h"
#include "tests/test.h"

TEST(encoding_matches_the_vectors_of_rfc_4648)
{
        static const struct {
                const char *text;
                const char *bytes;
                size_t length;
        } cases[] = {
                { "", "", 0 },
                { "Zg==", "f", 1 },
                { "Zm8=", "fo", 2 },
                { "Zm9v", "foo", 3 },
                { "Zm9vYg==", "foob", 4 },
                { "Zm9v\r\nYmE=\n", "fooba", 5 },
                { "AP/+", "\0\xff\xfe", 3 },
                { "+/+/", "\xfb\xff\xbf", 3 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *data = NULL;
                size_t length = 99;

                EXPECT_EQ(base64_decode(cases[i].text, &data, &length), 0);
                EXPECT_EQ(length, cases[i].length);
                EXPECT(data && memcmp(data, cases[i].bytes, length + 1) == 0);
        }
}

TEST(invalid_base64_is_refused)
{
        static const char *const cases[] = {
                "Z",    "Zg",       "Zg=",   "Zm9",  "Zg===", "=",
                "====", "Zg==Zg==", "Zm9v=", "Z g=", "Zm9-",  "Zm=v",
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                char *data = NULL;
                size_t length;

                if (base64_decode(cases[i], &data, &length) != -EINVAL)
                        test_fail(__FILE__, __LINE__, cases[i], "was taken");
        }
}

TEST(decoding_reverses_encoding)
{
        static const char bytes[] = { 'f', 'o', 'o', '\0', '\xff', 'b' };
        static const char *const encoded[] = { "",         "Zg==",     "Zm8=",    "Zm9v",
                                               "Zm9vAA==", "Zm9vAP8=", "Zm9vAP9i" };

        for (size_t i = 0; i < N_ELEMENTS(encoded); i++) {
                cleanup_free char *decoded = NULL;
                char text[16];
                size_t length;

                base64_encode(bytes, i, text);
                EXPECT_STREQ(text, encoded[i]);
                REQUIRE(base64_decode(text, &decoded, &length) >= 0);
                EXPECT(length == i && memcmp(decoded, bytes, i) == 0);
        }
}
