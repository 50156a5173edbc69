/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/counted-containers.h"
#include "common/cleanup.h"
#include "tests/test.h"

TEST(the_last_count_of_each_container_is_kept)
{
        CountedContainers usages = { 0 };
        const CountedContainer *found;

        EXPECT_EQ(counted_containers_set(&usages, "a", &(ProcessUsage){ .n_sockets = 1 }, 5), 0);
        EXPECT_EQ(counted_containers_set(&usages, "b", &(ProcessUsage){ .n_sockets = 2 }, 6), 0);
        EXPECT_EQ(counted_containers_set(&usages, "a", &(ProcessUsage){ .n_sockets = 3 }, 7), 0);
        found = counted_containers_find(&usages, "a");
        REQUIRE(found);
        EXPECT_EQ(found->usage.n_sockets, 3);
        EXPECT_EQ(found->taken_at, 7);
        counted_containers_remove(&usages, "a");
        counted_containers_remove(&usages, "c");
        EXPECT(!counted_containers_find(&usages, "a"));
        found = counted_containers_find(&usages, "b");
        REQUIRE(found);
        EXPECT_EQ(found->usage.n_sockets, 2);
        counted_containers_clear(&usages);
        EXPECT(!counted_containers_find(&usages, "b"));
}

TEST(number_of_stored_counts_is_limited)
{
        CountedContainers usages = { 0 };
        char id[16];

        for (unsigned i = 0; i < COUNTED_CONTAINERS_MAX; i++) {
                (void) snprintf(id, sizeof(id), "%u", i);
                EXPECT_EQ(counted_containers_set(&usages, id, &(ProcessUsage){ 0 }, 1), 0);
        }
        EXPECT_EQ(counted_containers_set(&usages, "more", &(ProcessUsage){ 0 }, 1), -ENOBUFS);
        EXPECT_EQ(counted_containers_set(&usages, "7", &(ProcessUsage){ .n_sockets = 1 }, 2), 0);
        counted_containers_clear(&usages);
}
