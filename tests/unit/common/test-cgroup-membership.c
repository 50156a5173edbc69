/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cgroup-usage.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "tests/test.h"

static void expect_group(const char *text, int version, int r, const char *group) {
        cleanup_free char *found = NULL;

        EXPECT_EQ(cgroup_membership_parse(text, version, &found), r);
        EXPECT_STREQ(strna(found), strna(group));
}

TEST(cgroup_v2_path_is_read_from_the_line_without_controllers)
{
        expect_group("0::/system.slice/mainstay.service\n", 2, 0, "/system.slice/mainstay.service");
        expect_group("1:name=systemd:/other\n0::/a:b\n", 2, 0, "/a:b");
        expect_group("0::/", 2, 0, "/");
        expect_group("4:memory:/a\n", 2, -ENOENT, NULL);
        expect_group("", 2, -ENOENT, NULL);
        expect_group("0::/../other\n", 2, -ENOENT, NULL);
        expect_group("0:\n", 2, -ENOENT, NULL);
}

TEST(cgroup_v1_path_must_be_the_same_for_memory_and_cpu)
{
        expect_group("4:memory:/a\n3:cpu,cpuacct:/a\n0::/b\n", 1, 0, "/a");
        expect_group("4:memory:/a\n3:cpuacct,cpu:/\n0::/a\n", 1, -EXDEV, NULL);
        expect_group("4:memory:/a\n3:cpu:/a\n", 1, -ENOENT, NULL);
        expect_group("4:memory2:/a\n3:cpuacct:/a\n", 1, -ENOENT, NULL);
}

TEST(a_weight_is_shown_as_shares)
{
        EXPECT_EQ(cgroup_shares_of_weight(0), 0);
        EXPECT_EQ(cgroup_shares_of_weight(1), 2);
        EXPECT_EQ(cgroup_shares_of_weight(100), 2597);
        EXPECT_EQ(cgroup_shares_of_weight(10000), 262144);
        EXPECT_EQ(cgroup_shares_of_weight(10001), 0);
}
