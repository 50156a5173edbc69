/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/manager/shutdown-stages.h"
#include "tests/test.h"

static const ShutdownStage stages[] = { { 0, 20 }, { 1000, 5 }, { 2000000000, 10 } };

TEST(a_pod_is_stopped_with_the_last_stage_that_its_priority_reaches)
{
        static const struct {
                int64_t priority;
                size_t stage;
        } cases[] = {
                { -5, 0 }, { 0, 0 }, { 999, 0 }, { 1000, 1 }, { 1999999999, 1 }, { 2000001000, 2 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_EQ(shutdown_stage_of(stages, N_ELEMENTS(stages), cases[i].priority),
                          cases[i].stage);
        EXPECT_EQ(shutdown_stage_of(stages, 1, 2000001000), 0);
}

TEST(total_shutdown_time_is_the_sum_of_the_stages)
{
        EXPECT_EQ(shutdown_total_usec(stages, N_ELEMENTS(stages)), 35);
        EXPECT_EQ(shutdown_total_usec(stages, 0), 0);
}
