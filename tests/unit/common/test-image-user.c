/* SPDX-License-Identifier: Apache-2.0 */
#include "common/image-user.h"
#include "tests/test.h"

#include <errno.h>

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
                             "# a comment\n"
                             "\n"
                             "broken\n"
                             "broken:x:notanumber:5::/:\n"
                             "huge:x:2147483648:5::/:\n"
                             "app:x:1000:1001:App:/home/app:/bin/sh\n"
                             "1234:x:0:0::/:\n"
                             "last:x:5:6::/:/bin/sh";

static const char group[] = "root:x:0:root\n"
                            "app:x:1001:app\n"
                            "audio:x:29:app,last\n"
                            "video:x:44:other,app\n"
                            "apple:x:45:apples,xapp\n"
                            "again:x:44:app\n"
                            "huge:x:4294967296:app\n"
                            "55:x:56:";

TEST(users_are_looked_up_as_containerd_does)
{
        static const struct {
                const char *user;
                uid_t uid;
                gid_t gid;
                size_t n_groups;
                gid_t groups[2];
        } cases[] = {
                { NULL, 0, 0, 0, { 0 } },
                { "", 0, 0, 0, { 0 } },
                { "root", 0, 0, 0, { 0 } },
                { "0", 0, 0, 0, { 0 } },
                { "app", 1000, 1001, 2, { 29, 44 } },
                { "1000", 1000, 1001, 2, { 29, 44 } },
                { "app:", 1000, 1001, 2, { 29, 44 } },
                { "app:audio", 1000, 29, 1, { 44 } },
                { "app:7", 1000, 7, 2, { 29, 44 } },
                { "1000:7", 1000, 7, 2, { 29, 44 } },
                { "4242", 4242, 0, 0, { 0 } },
                { "4242:4343", 4242, 4343, 0, { 0 } },
                { "2147483647", 2147483647, 0, 0, { 0 } },
                { "1234", 1234, 0, 0, { 0 } },
                { "last", 5, 6, 1, { 29 } },
                { ":audio", 0, 29, 0, { 0 } },
                { "0:55", 0, 55, 0, { 0 } },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                ImageUser account = { 0 };

                EXPECT_EQ(image_user_find(cases[i].user, passwd, group, &account, NULL), 0);
                EXPECT_EQ(account.uid, cases[i].uid);
                EXPECT_EQ(account.gid, cases[i].gid);
                EXPECT_EQ(account.n_groups, cases[i].n_groups);
                for (size_t j = 0; j < account.n_groups && j < cases[i].n_groups; j++)
                        EXPECT_EQ(account.groups[j], cases[i].groups[j]);
                image_user_done(&account);
        }
}

TEST(unknown_users_are_refused)
{
        static const struct {
                const char *user, *message;
        } cases[] = {
                { "nobody", "the image's user 'nobody' is not in its /etc/passwd" },
                { "app:nogroup", "the image's group 'nogroup' is not in its /etc/group" },
                { "broken", "the image's user 'broken' is not in its /etc/passwd" },
                { "huge", "the image's user 'huge' is not in its /etc/passwd" },
                { "2147483648", "the image's user '2147483648' is out of range" },
                { "4294967296", "the image's user '4294967296' is out of range" },
                { "18446744073709551616",
                  "the image's user '18446744073709551616' is out of range" },
                { "2147483648:0", "the image's user '2147483648' is out of range" },
                { "0:2147483648", "the image's group '2147483648' is out of range" },
                { "-1", "the image's user '-1' is out of range" },
                { "1000 ", "the image's user '1000 ' is not in its /etc/passwd" },
                { "# a comment", "the image's user '# a comment' is not in its /etc/passwd" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                Error error = ERROR_NULL;
                ImageUser account = { 0 };

                EXPECT_EQ(image_user_find(cases[i].user, passwd, group, &account, &error), -EINVAL);
                EXPECT_STREQ(error.message, cases[i].message);
                error_done(&error);
        }
}

TEST(numbers_need_no_files)
{
        ImageUser account = { 0 };

        EXPECT_EQ(image_user_find("1000:1000", NULL, NULL, &account, NULL), 0);
        EXPECT_EQ(account.uid, 1000);
        EXPECT_EQ(account.gid, 1000);
        EXPECT_EQ(image_user_find("app", NULL, NULL, &account, NULL), -EINVAL);
        EXPECT_EQ(image_user_find("", NULL, NULL, &account, NULL), 0);
        EXPECT_EQ(account.uid, 0);
}

/* Without the missing layer, the user could resolve to another account. */
TEST(a_missing_layer_is_an_error_that_names_it)
{
        char root[] = "/", missing[] = "/nowhere/layer";
        char *layers[] = { root, missing, NULL };
        cleanup_image_user ImageUser account = { 0 };
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(image_user_find_in_directories("1000", layers, &account, &error), -ENOENT);
        EXPECT_STREQ(error.message,
                     "cannot open the layer '/nowhere/layer': No such file or directory");
}
