/* SPDX-License-Identifier: Apache-2.0 */
#include "common/error.h"
#include "tests/test.h"

#include <errno.h>

TEST(the_innermost_function_says_what_is_wrong_and_gives_the_negative_errno)
{
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(error_setf(&error, EINVAL, "must be at most %d", 63), -EINVAL);
        EXPECT_STREQ(error.message, "must be at most 63");
}

TEST(a_sentence_that_is_there_stays)
{
        cleanup_error Error error = ERROR_NULL;

        (void) error_setf(&error, EINVAL, "the first");
        EXPECT_EQ(error_setf(&error, ENOMEM, "the second"), -ENOMEM);
        EXPECT_STREQ(error.message, "the first");
}

TEST(layers_add_where_it_happened_from_the_inside_out)
{
        cleanup_error Error error = ERROR_NULL;
        int r = error_setf(&error, EINVAL, "is too long");

        r = error_prefixf(&error, r, "ports[%d]", 2);
        r = error_prefixf(&error, r, "%s", "web.yaml");
        EXPECT_EQ(r, -EINVAL);
        EXPECT_STREQ(error.message, "web.yaml: ports[2]: is too long");
}

TEST(an_errno_without_a_sentence_gets_the_one_of_the_c_library)
{
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(error_prefixf(&error, -ENOENT, "config.json"), -ENOENT);
        EXPECT_STREQ(error.message, "config.json: No such file or directory");
}

TEST(nobody_need_listen)
{
        EXPECT_EQ(error_setf(NULL, EPERM, "unheard"), -EPERM);
        EXPECT_EQ(error_prefixf(NULL, -EPERM, "unheard"), -EPERM);
        EXPECT_STREQ(error_message(NULL, -EPERM), "Operation not permitted");
}

TEST(moving_leaves_nothing_behind_and_frees_what_was_there)
{
        cleanup_error Error from = ERROR_NULL, to = ERROR_NULL;

        (void) error_setf(&to, EIO, "old");
        (void) error_setf(&from, EIO, "new");
        error_move(&to, &from);
        EXPECT_STREQ(to.message, "new");
        EXPECT_STREQ(from.message, NULL);
}
