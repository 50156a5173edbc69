/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clock-watch.h"

#include "common/clock.h"
#include "tests/test.h"

#define MINUTE (60 * USEC_PER_SEC)

TEST(clock_steps_of_a_minute_are_reported_in_both_directions)
{
        static const struct {
                uint64_t reported, offset;
                bool matters;
        } cases[] = {
                { 100 * MINUTE, 100 * MINUTE, false },
                { 100 * MINUTE, 101 * MINUTE - 1, false },
                { 100 * MINUTE, 101 * MINUTE, true },
                { 100 * MINUTE, 99 * MINUTE + 1, false },
                { 100 * MINUTE, 99 * MINUTE, true },
                /* In 1970 realtime may be behind boottime. */
                { -UINT64_C(10), 10, false },
                { -MINUTE, 29000000 * MINUTE, true },
                { 29000000 * MINUTE, -MINUTE, true },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_EQ(clock_step_matters(cases[i].reported, cases[i].offset), cases[i].matters);
}

static void fail_if_called(void *userdata) {
        EXPECT(!userdata);
}

TEST(a_watch_is_silent_while_the_clock_is_not_set)
{
        cleanup_with(clock_watch_freep) ClockWatch *watch = NULL;
        sd_event *event = NULL;

        EXPECT_EQ(sd_event_new(&event), 0);
        EXPECT_EQ(clock_watch_new(event, fail_if_called, &event, &watch), 0);
        EXPECT_EQ(sd_event_run(event, 1000), 0);
        watch = clock_watch_free(watch);
        sd_event_unref(event);
}
