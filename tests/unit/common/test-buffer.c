/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buffer.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <errno.h>
#include <stdint.h>

TEST(buffer_content_is_nul_terminated)
{
        cleanup_buffer Buffer buffer = { 0 };

        EXPECT_EQ(buffer_append(&buffer, "one", 3, 100), 0);
        EXPECT_EQ(buffer_append(&buffer, " two", 4, 100), 0);
        EXPECT_EQ(buffer_append(&buffer, NULL, 0, 100), 0);
        EXPECT_EQ(buffer.length, 7);
        EXPECT_STREQ(buffer.data, "one two");
}

TEST(buffer_is_an_empty_string_after_an_empty_append)
{
        cleanup_buffer Buffer buffer = { 0 };

        EXPECT_EQ(buffer_append(&buffer, NULL, 0, 0), 0);
        EXPECT_STREQ(buffer.data, "");
}

TEST(buffer_limit_is_enforced_and_keeps_existing_content)
{
        cleanup_buffer Buffer buffer = { 0 };

        EXPECT_EQ(buffer_append(&buffer, "12345", 5, 5), 0);
        EXPECT_EQ(buffer_append(&buffer, "6", 1, 5), -EFBIG);
        EXPECT_EQ(buffer_append(&buffer, "6", SIZE_MAX, 5), -EFBIG);
        EXPECT_EQ(buffer_append(&buffer, "", 0, 4), -EFBIG);
        EXPECT_STREQ(buffer.data, "12345");
}

TEST(buffer_refuses_a_length_beyond_the_address_space)
{
        cleanup_buffer Buffer buffer = { 0 };

        EXPECT(!buffer_reserve(&buffer, SIZE_MAX));
        EXPECT(!buffer_reserve(&buffer, SIZE_MAX - 1));
        EXPECT(!buffer.data);
}

TEST(buffer_bytes_are_written_in_place_once_reserved)
{
        cleanup_buffer Buffer buffer = { 0 };
        char *end = buffer_reserve(&buffer, 3);

        REQUIRE(end);
        memcpy(end, "abc", 4);
        buffer.length += 3;
        EXPECT_EQ(buffer_append(&buffer, "d", 1, 4), 0);
        EXPECT_STREQ(buffer.data, "abcd");
}

TEST(buffer_drops_consumed_bytes_at_its_front)
{
        cleanup_buffer Buffer buffer = { 0 };

        buffer_drop(&buffer, 0);
        EXPECT_EQ(buffer_append(&buffer, "line\nrest", 9, 100), 0);
        buffer_drop(&buffer, 5);
        EXPECT_EQ(buffer.length, 4);
        EXPECT_STREQ(buffer.data, "rest");
        buffer_drop(&buffer, 4);
        EXPECT_STREQ(buffer.data, "");
}

TEST(buffer_content_belongs_to_the_caller_once_taken)
{
        cleanup_buffer Buffer buffer = { 0 };
        cleanup_free char *text = NULL;

        EXPECT(!buffer_take(&buffer));
        EXPECT_EQ(buffer_append(&buffer, "x", 1, 1), 0);
        text = buffer_take(&buffer);
        EXPECT_STREQ(text, "x");
        EXPECT(!buffer.data);
        EXPECT_EQ(buffer.length, 0);
        EXPECT_EQ(buffer_append(&buffer, "secret", 6, 6), 0);
        buffer_erase(&buffer);
        EXPECT(!buffer.data);
}
