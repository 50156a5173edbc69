/* SPDX-License-Identifier: Apache-2.0 */
#include "common/account-file.h"
#include "common/cleanup.h"
#include "tests/test.h"

static void expect_users(const char *text, const char *expected) {
        cleanup_account_file AccountFile file = { 0 };
        char found[256] = "";
        struct passwd entry;

        REQUIRE(account_file_open(&file, text) == 0);
        while (account_file_next_user(&file, &entry)) {
                size_t n = strlen(found);

                (void) snprintf(found + n, sizeof(found) - n, "%s=%u:%u ", entry.pw_name,
                                entry.pw_uid, entry.pw_gid);
        }
        EXPECT_STREQ(found, expected);
}

TEST(lines_that_are_not_entries_are_skipped)
{
        expect_users(NULL, "");
        expect_users("", "");
        expect_users("\n\n# a:x:1:1\nword\na:x\na:x:1\na:x:no:1:::\n", "");
        expect_users("a:x:1:2:::\nb:x:3:4", "a=1:2 b=3:4 ");
        expect_users("+:x:::::\n+a:x:0:0:::\n-b:x:0:0:::\nc:x:5:6:::\n", "c=5:6 ");
        expect_users("a:x:2147483648:0:::\nb:x:0:4294967296:::\nc:x:-1:0:::\nd:x:7:8:::\n",
                     "d=7:8 ");
}

TEST(a_group_with_very_many_members_is_read_completely)
{
        enum {
                N = 20000
        };
        cleanup_account_file AccountFile file = { 0 };
        cleanup_free char *members = calloc(1, 2 * N + 1), *text = NULL;
        struct group entry;
        size_t n = 0;

        REQUIRE(members);
        for (size_t i = 0; i < N; i++)
                (void) memcpy(members + 2 * i, "a,", 2);
        REQUIRE(asprintf(&text, "many:x:5:%slast\nnext:x:6:\n", members) > 0);
        REQUIRE(account_file_open(&file, text) == 0);
        REQUIRE(account_file_next_group(&file, &entry));
        EXPECT_EQ(entry.gr_gid, 5U);
        while (entry.gr_mem[n])
                n++;
        EXPECT_EQ(n, (size_t) N + 1);
        EXPECT(group_has_member(&entry, "last"));
        EXPECT(!group_has_member(&entry, "las"));
        REQUIRE(account_file_next_group(&file, &entry));
        EXPECT_EQ(entry.gr_gid, 6U);
        EXPECT(!group_has_member(&entry, ""));
        EXPECT(!account_file_next_group(&file, &entry));
}
