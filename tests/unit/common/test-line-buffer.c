/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/line-buffer.h"
#include "tests/test.h"

#include <errno.h>

enum {
        MAX = 10
};

static void expect_line(LineBuffer *lines, const char *expected) {
        const char *line = NULL;
        size_t length = 0;
        bool is_taken = line_buffer_take(lines, &line, &length);
        cleanup_free char *copy = is_taken ? strndup(line, length) : NULL;

        EXPECT_STREQ(copy ? copy : "(none)", expected ? expected : "(none)");
}

static int push(LineBuffer *lines, const char *text) {
        return line_buffer_push(lines, text, strlen(text), MAX);
}

TEST(lines_do_not_depend_on_how_the_stream_is_split)
{
        static const char stream[] = "one\n\ntwo\nthree\nrest";

        for (size_t size = 1; size < sizeof(stream); size++) {
                cleanup_line_buffer LineBuffer lines = { 0 };
                cleanup_free char *found = strdup("");

                for (size_t at = 0; at < strlen(stream); at += size) {
                        size_t n = MIN(size, strlen(stream) - at), length;
                        const char *line;

                        EXPECT_EQ(line_buffer_push(&lines, stream + at, n, sizeof(stream)), 0);
                        while (line_buffer_take(&lines, &line, &length)) {
                                char *more = NULL;

                                REQUIRE(asprintf(&more, "%s<%.*s>", found, (int) length, line) > 0);
                                free(found);
                                found = more;
                        }
                }
                EXPECT_STREQ(found, "<one><><two><three>");
        }
}

TEST(a_line_that_exceeds_the_limit_is_refused_and_the_rest_is_kept)
{
        cleanup_line_buffer LineBuffer lines = { 0 };

        EXPECT_EQ(push(&lines, "a\n23456789"), 0);
        EXPECT_EQ(push(&lines, "x"), -EFBIG);
        expect_line(&lines, "a");
        expect_line(&lines, NULL);
        EXPECT_EQ(push(&lines, "xyz"), -EFBIG); /* the line that was taken has freed two bytes */
        EXPECT_EQ(push(&lines, "x\n"), 0);
        expect_line(&lines, "23456789x");
        expect_line(&lines, NULL);
}

TEST(an_empty_buffer_holds_no_memory)
{
        cleanup_line_buffer LineBuffer lines = { 0 };

        expect_line(&lines, NULL);
        EXPECT_EQ(push(&lines, ""), 0);
        expect_line(&lines, NULL);
        EXPECT(lines.bytes.data == NULL);
        EXPECT_EQ(push(&lines, "a\n"), 0);
        expect_line(&lines, "a");
        EXPECT(lines.bytes.data != NULL);
        expect_line(&lines, NULL);
        EXPECT(lines.bytes.data == NULL);
}

TEST(first_line_of_a_text_includes_its_newline)
{
        EXPECT_EQ(text_line_length("", 0), 0U);
        EXPECT_EQ(text_line_length("\n", 1), 1U);
        EXPECT_EQ(text_line_length("ab\ncd", 5), 3U);
        EXPECT_EQ(text_line_length("ab", 2), 2U);
}
