/* SPDX-License-Identifier: Apache-2.0 */
#include "common/app-armor.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

TEST(app_armor_mode_is_found_only_for_the_exact_profile_name)
{
        static const char text[] = "/usr/bin/man (enforce)\n"
                                   "/usr/bin/man//filter (complain)\n"
                                   "a (b) (kill)\n"
                                   "last (unconfined)";
        static const struct {
                const char *name, *mode; /* NULL: not loaded */
        } cases[] = {
                { "/usr/bin/man", "enforce" },
                { "/usr/bin/man//filter", "complain" },
                { "a (b)", "kill" },
                { "last", "unconfined" },
                { "a", NULL },
                { "/usr/bin/ma", NULL },
                { "unconfined", NULL },
                { "", NULL },
        };
        cleanup_free char *path = path_join(test_directory(), "profiles");

        REQUIRE(write_file_atomic_at(AT_FDCWD, path, text, strlen(text), 0600) == 0);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *mode = NULL;
                int r = app_armor_find_mode(path, cases[i].name, &mode);

                EXPECT_EQ(r, cases[i].mode ? 0 : -ENOENT);
                EXPECT_STREQ(strna(mode), strna(cases[i].mode));
        }
}

TEST(app_armor_mode_is_unknown_without_a_list_of_profiles)
{
        cleanup_free char *mode = NULL;

        EXPECT_EQ(app_armor_find_mode("/nowhere/profiles", "mine", &mode), -ENOTSUP);
        EXPECT(!mode);
}
