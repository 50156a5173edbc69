/* SPDX-License-Identifier: Apache-2.0 */
#include "common/strv.h"
#include "tests/test.h"

/* Writable strings, like the elements of these arrays. */
static char a[] = "a", b[] = "b", c[] = "c";

TEST(null_is_treated_as_an_empty_array)
{
        unsigned seen = 0;

        EXPECT_EQ(strv_length(NULL), 0);
        EXPECT(strv_equal(NULL, (char *[]){ NULL }));
        strv_foreach(item, (char **) NULL)
                seen++;
        EXPECT_EQ(seen, 0);
        EXPECT(!strv_free(NULL));
}

TEST(appending_copies_and_keeps_the_order)
{
        cleanup_strv char **list = NULL;
        char word[] = "one";

        EXPECT_EQ(strv_append(&list, word), 0);
        word[0] = 'x';
        EXPECT_EQ(strv_appendf(&list, "%s-%d", "two", 2), 0);
        EXPECT_EQ(strv_length(list), 2);
        EXPECT_STREQ(list[0], "one");
        EXPECT_STREQ(list[1], "two-2");
        EXPECT(!list[2]);
}

TEST(extending_copies_all_elements_and_accepts_null)
{
        cleanup_strv char **list = NULL;
        char *more[] = { b, c, NULL };

        EXPECT_EQ(strv_append(&list, "a"), 0);
        EXPECT_EQ(strv_extend(&list, NULL), 0);
        EXPECT_EQ(strv_extend(&list, more), 0);
        EXPECT_EQ(strv_length(list), 3);
        EXPECT_STREQ(list[2], "c");
        EXPECT(list[2] != more[1]);
}

TEST(arrays_differ_by_length_order_and_content)
{
        char *ab[] = { a, b, NULL };
        char *ba[] = { b, a, NULL };
        char *only_a[] = { a, NULL };

        EXPECT(strv_equal(ab, ab));
        EXPECT(!strv_equal(ab, ba));
        EXPECT(!strv_equal(ab, only_a));
        EXPECT(!strv_equal(only_a, NULL));
}

TEST(the_loop_stops_at_the_end)
{
        char *list[] = { a, b, NULL, c };
        unsigned seen = 0;

        strv_foreach(item, list) {
                EXPECT_STREQ(*item, list[seen]);
                seen++;
        }
        EXPECT_EQ(seen, 2);
}
