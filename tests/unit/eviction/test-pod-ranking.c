/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/pod-ranking.h"
#include "tests/test.h"

#include <stdio.h>

/* The order of the indices, as text. */
static const char *order(EvictionSignal signal, PodUsage *uses, size_t n) {
        static char text[64];
        size_t length = 0;

        for (size_t i = 0; i < n; i++) {
                uses[i].index = i;
                uses[i].is_known = uses[i].used >= 0;
        }
        rank_pods_for_eviction(signal, uses, n);
        for (size_t i = 0; i < n; i++)
                length += (size_t) snprintf(text + length, sizeof(text) - length, "%zu ",
                                            uses[i].index);
        return text;
}

TEST(pods_that_exceed_their_requests_are_evicted_before_others_whatever_the_priority)
{
        PodUsage uses[] = { { .priority = 0, .used = 100, .requested = 100 },
                            { .priority = 1000, .used = 101, .requested = 100 },
                            { .priority = 5, .used = 1, .requested = 0 } };

        EXPECT_STREQ(order(EVICTION_MEMORY, uses, N_ELEMENTS(uses)), "2 1 0 ");
}

TEST(pods_of_one_priority_are_ranked_by_usage_over_requests)
{
        PodUsage uses[] = { { .used = 900, .requested = 880 },
                            { .used = 100, .requested = 0 },
                            { .used = 300, .requested = 250 } };

        EXPECT_STREQ(order(EVICTION_NODE_FS, uses, N_ELEMENTS(uses)), "1 2 0 ");
}

TEST(pods_are_ranked_by_priority_then_process_count_under_pid_pressure)
{
        PodUsage uses[] = { { .priority = 1, .used = 5000 },
                            { .priority = 0, .used = 3 },
                            { .priority = 0, .used = 40 } };

        EXPECT_STREQ(order(EVICTION_PIDS, uses, N_ELEMENTS(uses)), "2 1 0 ");
}

TEST(pods_of_unknown_usage_are_last_and_equal_ones_keep_their_order)
{
        PodUsage uses[] = { { .used = -1 }, { .used = 7 }, { .used = 7 } };

        EXPECT_STREQ(order(EVICTION_MEMORY, uses, N_ELEMENTS(uses)), "1 2 0 ");
}

TEST(a_pod_that_has_written_almost_nothing_is_not_evicted_for_a_disk)
{
        const PodUsage little = { .is_known = true, .used = 10 };
        const PodUsage much = { .is_known = true, .used = 11 };

        EXPECT(!eviction_frees_enough(EVICTION_NODE_FS, &little, 1000));
        EXPECT(eviction_frees_enough(EVICTION_NODE_FS, &much, 1000));
        EXPECT(eviction_frees_enough(EVICTION_MEMORY, &little, 1000));
        EXPECT(eviction_frees_enough(EVICTION_PIDS, &little, 1000));
}
