/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "common/handshake.h"

TEST(the_answer_to_a_key_is_that_of_the_rfc)
{
        char accept[HANDSHAKE_SIZE];

        EXPECT_STREQ(handshake_accept("dGhlIHNhbXBsZSBub25jZQ==", accept),
                     "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(a_key_is_sixteen_bytes_and_another_each_time)
{
        char a[HANDSHAKE_SIZE], b[HANDSHAKE_SIZE];

        EXPECT_EQ(strlen(handshake_key(a)), 24);
        EXPECT(!streq(a, handshake_key(b)));
}
