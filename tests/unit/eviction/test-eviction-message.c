/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/eviction-message.h"
#include "common/cleanup.h"
#include "tests/test.h"

TEST(an_eviction_message_names_containers_that_exceed_their_requests)
{
        const ResourceShortage shortage = { .signal = EVICTION_MEMORY,
                                            .quantity = 100 << 20,
                                            .available = 80836 << 10 };
        const ContainerUsage uses[] = { { "fat", 123456 << 10, 0, NULL },
                                        { "slim", 10 << 20, 64 << 20, "64Mi" },
                                        { "thick", 100 << 20, 64 << 20, "64Mi" } };
        cleanup_free char *text = format_eviction_message(&shortage, uses, N_ELEMENTS(uses));

        EXPECT_STREQ(text, "The node was low on resource: memory. Threshold quantity: 100Mi, "
                           "available: 80836Ki. Container fat was using 123456Ki, request is 0, "
                           "has larger consumption of memory. Container thick was using 100Mi, "
                           "request is 64Mi, has larger consumption of memory.");
}

TEST(inodes_and_processes_are_printed_as_decimal_quantities)
{
        const ResourceShortage shortage = { .signal = EVICTION_PIDS,
                                            .quantity = 2000,
                                            .available = 1234 };
        cleanup_free char *text = format_eviction_message(&shortage, NULL, 0);

        EXPECT_STREQ(text, "The node was low on resource: pids. Threshold quantity: 2k, "
                           "available: 1234.");
}

TEST(reclaiming_is_reported_by_the_resource)
{
        const ResourceShortage shortage = { .signal = EVICTION_NODE_FS_INODES };
        cleanup_free char *text = format_reclaim_message(&shortage);

        EXPECT_STREQ(text, "Attempting to reclaim inodes");
}

TEST(conditions_are_printed_in_brackets)
{
        cleanup_free char *text = format_condition_list(NODE_CONDITION_BIT(NODE_PID_PRESSURE) |
                                                        NODE_CONDITION_BIT(NODE_DISK_PRESSURE));

        EXPECT_STREQ(text, "[DiskPressure PIDPressure]");
}
