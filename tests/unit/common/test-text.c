/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/text.h"
#include "tests/test.h"

TEST(text_is_formatted)
{
        cleanup_free char *text = text_format("%s-%d", "pod", 7);

        EXPECT_STREQ(text, "pod-7");
}

TEST(text_is_replaced_even_by_a_part_of_itself)
{
        cleanup_free char *text = NULL;

        EXPECT_EQ(text_replace(&text, "one two"), 0);
        EXPECT_EQ(text_replace(&text, text + 4), 0);
        EXPECT_STREQ(text, "two");
        EXPECT_EQ(text_replace(&text, NULL), 0);
        EXPECT(!text);
}

TEST(text_is_appended)
{
        cleanup_free char *text = NULL;

        EXPECT_EQ(text_appendf(&text, "%d", 1), 0);
        EXPECT_EQ(text_appendf(&text, ", %s", text), 0);
        EXPECT_STREQ(text, "1, 1");
}

TEST(text_items_are_joined_with_a_separator)
{
        static char a[] = "a", b[] = "bc", empty[] = "";
        cleanup_free char *none = text_join(NULL, ", ");
        cleanup_free char *one = text_join((char *[]){ a, NULL }, ", ");
        cleanup_free char *all = text_join((char *[]){ a, empty, b, NULL }, ", ");

        EXPECT_STREQ(none, "");
        EXPECT_STREQ(one, "a");
        EXPECT_STREQ(all, "a, , bc");
}

TEST(text_is_any_of_finds_a_word_among_its_arguments)
{
        EXPECT(TEXT_IS_ANY_OF("b", "a", "b"));
        EXPECT(TEXT_IS_ANY_OF("a", "a"));
        EXPECT(!TEXT_IS_ANY_OF("", "a", "b") && !TEXT_IS_ANY_OF("ab", "a", "b"));
}
