/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/container-usages.h"
#include "common/cleanup.h"
#include "tests/test.h"

TEST(the_last_answer_for_each_container_is_kept)
{
        ContainerUsages usages = { 0 };
        const ContainerUsage *found;

        EXPECT_EQ(container_usages_set(&usages, "a", &(ProcessUsage){ .n_sockets = 1 }, 5), 0);
        EXPECT_EQ(container_usages_set(&usages, "b", &(ProcessUsage){ .n_sockets = 2 }, 6), 0);
        EXPECT_EQ(container_usages_set(&usages, "a", &(ProcessUsage){ .n_sockets = 3 }, 7), 0);
        found = container_usages_find(&usages, "a");
        REQUIRE(found);
        EXPECT_EQ(found->usage.n_sockets, 3);
        EXPECT_EQ(found->taken_at, 7);
        container_usages_remove(&usages, "a");
        container_usages_remove(&usages, "c");
        EXPECT(!container_usages_find(&usages, "a"));
        found = container_usages_find(&usages, "b");
        REQUIRE(found);
        EXPECT_EQ(found->usage.n_sockets, 2);
        container_usages_clear(&usages);
        EXPECT(!container_usages_find(&usages, "b"));
}

TEST(answers_have_a_limit)
{
        ContainerUsages usages = { 0 };
        char id[16];

        for (unsigned i = 0; i < CONTAINER_USAGES_MAX; i++) {
                (void) snprintf(id, sizeof(id), "%u", i);
                EXPECT_EQ(container_usages_set(&usages, id, &(ProcessUsage){ 0 }, 1), 0);
        }
        EXPECT_EQ(container_usages_set(&usages, "more", &(ProcessUsage){ 0 }, 1), -ENOBUFS);
        EXPECT_EQ(container_usages_set(&usages, "7", &(ProcessUsage){ .n_sockets = 1 }, 2), 0);
        container_usages_clear(&usages);
}
