/* SPDX-License-Identifier: Apache-2.0 */
#include "common/url-escape.h"

#include "common/cleanup.h"
#include "tests/test.h"

TEST(reserved_characters_are_escaped_in_a_query)
{
        cleanup_free char *escaped = url_escape("aZ09-._~/+=&\xc3\xa4 ");

        EXPECT_STREQ(escaped, "aZ09-._~%2F%2B%3D%26%C3%A4%20");
}
