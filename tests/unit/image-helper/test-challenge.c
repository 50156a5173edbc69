/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/challenge.h"
#include "tests/test.h"

TEST(a_challenge_is_read_with_all_that_it_says)
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

TEST(of_several_challenges_bearer_is_taken)
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

TEST(what_is_no_challenge_is_none)
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
