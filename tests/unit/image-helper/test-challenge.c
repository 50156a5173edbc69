/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/registry/challenge.h"
#include "tests/test.h"

TEST(a_challenge_is_parsed_with_all_its_parameters)
{
        Challenge challenge = { 0 };

        EXPECT_EQ(challenge_read(&challenge, "Bearer realm=\"https://auth.example.com/token\" , "
                                             "service=registry,scope=\"a \\\"b\\\",c\""),
                  0);
        EXPECT_EQ((int) challenge.scheme, (int) CHALLENGE_BEARER);
        EXPECT_STREQ(challenge.realm, "https://auth.example.com/token");
        EXPECT_STREQ(challenge.service, "registry");
        EXPECT_STREQ(challenge.scope, "a \"b\",c");
        challenge_done(&challenge);
}

TEST(bearer_is_preferred_over_other_schemes)
{
        static const char *const values[] = {
                "Basic realm=\"x\", Bearer realm=\"y\"",
                "Bearer realm=\"y\", Basic realm=\"x\"",
                "Negotiate, Digest a=b, bearer REALM=y",
        };

        for (size_t i = 0; i < N_ELEMENTS(values); i++) {
                Challenge challenge = { 0 };

                EXPECT_EQ(challenge_read(&challenge, values[i]), 0);
                EXPECT_EQ((int) challenge.scheme, (int) CHALLENGE_BEARER);
                EXPECT_STREQ(challenge.realm, "y");
                challenge_done(&challenge);
        }
}

TEST(an_invalid_header_gives_no_challenge)
{
        static const char *const values[] = {
                "",
                " ",
                ",,,",
                "Bearer",
                "Bearer realm",
                "Bearer realm=",
                "Bearer realm=\"",
                "Bearer realm=\"\\",
                "\"",
                "=",
                "Negotiate YII=",
        };

        for (size_t i = 0; i < N_ELEMENTS(values); i++) {
                Challenge challenge = { 0 };

                EXPECT_EQ(challenge_read(&challenge, values[i]), 0);
                EXPECT_EQ((int) challenge.scheme, (int) CHALLENGE_NONE);
                challenge_done(&challenge);
        }
}
