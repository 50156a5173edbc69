/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/signal-observations.h"
#include "tests/test.h"

TEST(observations_give_the_usage_of_file_systems_and_process_ids)
{
        const SignalObservations observed = { .of = { [EVICTION_NODE_FS] = { true, 30, 100 },
                                                      [EVICTION_NODE_FS_INODES] = { true, 4, 10 },
                                                      [EVICTION_IMAGE_FS] = { true, 50, 200 },
                                                      [EVICTION_IMAGE_FS_INODES] = { true, 6, 20 },
                                                      [EVICTION_PIDS] = { true, 900, 1000 } } };
        NodeStats node = node_stats_of_observations(&observed);

        EXPECT_EQ(node.filesystem.capacity, 100);
        EXPECT_EQ(node.filesystem.available, 30);
        EXPECT_EQ(node.filesystem.used, 70);
        EXPECT_EQ(node.filesystem.inodes, 10);
        EXPECT_EQ(node.filesystem.inodes_free, 4);
        EXPECT_EQ(node.image_filesystem.used, 150);
        EXPECT_EQ(node.image_filesystem.inodes_free, 6);
        EXPECT_EQ(node.pids_max, 1000);
        EXPECT_EQ(node.pids, 100);
}
