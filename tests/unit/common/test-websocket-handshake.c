/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "common/websocket-handshake.h"

TEST(the_accept_value_matches_the_example_of_the_rfc)
{
        char accept[WEBSOCKET_ACCEPT_SIZE];

        EXPECT_STREQ(websocket_accept_key("dGhlIHNhbXBsZSBub25jZQ==", accept),
                     "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(a_key_has_sixteen_random_bytes)
{
        char a[WEBSOCKET_ACCEPT_SIZE], b[WEBSOCKET_ACCEPT_SIZE];

        EXPECT_EQ(strlen(websocket_new_key(a)), 24);
        EXPECT(!streq(a, websocket_new_key(b)));
}
