/* SPDX-License-Identifier: Apache-2.0 */
#include "common/error.h"
#include "tests/test.h"

#include <errno.h>

TEST(the_innermost_function_sets_the_message_and_returns_the_negative_errno)
{
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(error_setf(&error, EINVAL, "must be at most %d", 63), -EINVAL);
        EXPECT_STREQ(error.message, "must be at most 63");
}

TEST(an_existing_message_is_kept)
{
        cleanup_error Error error = ERROR_NULL;

        (void) error_setf(&error, EINVAL, "the first");
        EXPECT_EQ(error_setf(&error, ENOMEM, "the second"), -ENOMEM);
        EXPECT_STREQ(error.message, "the first");
}

TEST(layers_add_the_place_from_the_inside_out)
{
        cleanup_error Error error = ERROR_NULL;
        int r = error_setf(&error, EINVAL, "is too long");

        r = error_prefixf(&error, r, "ports[%d]", 2);
        r = error_prefixf(&error, r, "%s", "web.yaml");
        EXPECT_EQ(r, -EINVAL);
        EXPECT_STREQ(error.message, "web.yaml: ports[2]: is too long");
}

TEST(an_errno_without_a_message_gets_that_of_the_c_library)
{
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(error_prefixf(&error, -ENOENT, "config.json"), -ENOENT);
        EXPECT_STREQ(error.message, "config.json: No such file or directory");
}

TEST(the_error_may_be_null)
{
        EXPECT_EQ(error_setf(NULL, EPERM, "unheard"), -EPERM);
        EXPECT_EQ(error_prefixf(NULL, -EPERM, "unheard"), -EPERM);
        EXPECT_STREQ(error_message(NULL, -EPERM), "Operation not permitted");
}

TEST(moving_an_error_empties_the_source_and_frees_the_previous_message)
{
        cleanup_error Error from = ERROR_NULL, to = ERROR_NULL;

        (void) error_setf(&to, EIO, "old");
        (void) error_setf(&from, EIO, "new");
        error_move(&to, &from);
        EXPECT_STREQ(to.message, "new");
        EXPECT_STREQ(from.message, NULL);
}
