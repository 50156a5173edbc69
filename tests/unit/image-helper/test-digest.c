/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/pull/digest.h"
#include "tests/test.h"

#define HEX "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

TEST(only_sha256_with_64_lower_case_digits_is_a_digest)
{
        static const struct {
                const char *text;
                bool valid;
        } cases[] = {
                { "sha256:" HEX, true },
                { "", false },
                { "sha256:", false },
                { HEX, false },
                { "sha256:" HEX "0", false },
                { "sha256:" HEX "\n", false },
                { "sha256:3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", false },
                { "sha256:E3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                  false },
                { "sha256:../../../../../../../../../../../../../../../../../../../etc/pass",
                  false },
                { "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b85/",
                  false },
                { "SHA256:" HEX, false },
                { "sha512:" HEX HEX, false },
                { "md5:d41d8cd98f00b204e9800998ecf8427e", false },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_EQ(digest_is_valid(cases[i].text), cases[i].valid);
}

TEST(a_digest_of_bytes_is_computed)
{
        char digest[DIGEST_SIZE];

        digest_of("", 0, digest);
        EXPECT_STREQ(digest, "sha256:" HEX);
        EXPECT_STREQ(digest_hex(digest), HEX);
}

/* sha256("sha256:a… sha256:b…"), as in the OCI image specification, computed with sha256sum. */
TEST(a_chain_id_is_the_first_diff_id_and_is_extended_layer_by_layer)
{
        static const char a[] =
                "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        static const char b[] =
                "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
        char chain[DIGEST_SIZE];

        digest_chain(NULL, a, chain);
        EXPECT_STREQ(chain, a);
        digest_chain(chain, b, chain);
        EXPECT_STREQ(chain,
                     "sha256:ccd722928bd92476ba1745586fed6e45a102504185ad88cd89e01ff116fd146c");
}
