/* SPDX-License-Identifier: Apache-2.0 */
#include "common/image-access.h"

#include "common/cleanup.h"
#include "tests/test.h"

TEST(a_pattern_is_a_repository_or_a_prefix_with_an_asterisk)
{
        cleanup_json json_t *allowlist =
                json_pack("[s, s, i]", "example.com/team/*", "example.com/app", 1);
        static const struct {
                const char *repository;
                bool is_listed;
        } cases[] = {
                { "example.com/team/a", true }, { "example.com/team/a/b", true },
                { "example.com/teams", false }, { "example.com/app", true },
                { "example.com/app2", false },  { "example.org/app", false },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_EQ(image_access_is_allowlisted(&(ImageAccessRules){ .allowlist = allowlist },
                                                      cases[i].repository),
                          cases[i].is_listed);
        EXPECT(!image_access_is_allowlisted(&(ImageAccessRules){ 0 }, "example.com/app"));
}

TEST(access_is_recorded_for_one_of_the_secrets_or_for_the_node)
{
        cleanup_json json_t *secrets = json_pack("{s:[s, s]}", "secrets", "aa", "bb"),
                            *node = json_pack("{s:b}", "node", 1),
                            *own = json_pack("[s, s]", "xx", "bb"),
                            *other = json_pack("[s, n]", "xx");

        EXPECT(image_access_is_recorded(secrets, own));
        EXPECT(!image_access_is_recorded(secrets, other));
        EXPECT(!image_access_is_recorded(secrets, NULL));
        EXPECT(image_access_is_recorded(node, NULL));
        EXPECT(!image_access_is_recorded(NULL, own));
}

TEST(access_is_found_by_the_repository_in_any_spelling)
{
        cleanup_json json_t *access =
                json_pack("{s:{s:b}, s:{}}", "LOCALHOST:05000/app", "node", 1, "example.com/app");

        EXPECT(image_access_is_recorded(image_access_find(access, "localhost:5000/app"), NULL));
        EXPECT(image_access_find(access, "example.com/app"));
        EXPECT(!image_access_find(access, "example.com/other"));
        EXPECT(!image_access_find(NULL, "example.com/app"));
}
