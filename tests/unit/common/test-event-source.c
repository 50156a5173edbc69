/* SPDX-License-Identifier: Apache-2.0 */
#include "common/event-source.h"

#include "common/clock.h"
#include "tests/test.h"

static int count_call(sd_event_source *timer, uint64_t usec, void *userdata) {
        ++*(unsigned *) userdata;
        return 0;
}

static uint64_t accuracy_of(sd_event_source *timer) {
        uint64_t usec = 0;

        EXPECT(sd_event_source_get_time_accuracy(timer, &usec) >= 0);
        return usec;
}

TEST(inexact_timer_has_accuracy_of_its_latest_delay)
{
        sd_event_source *timer = NULL;
        sd_event *event = NULL;
        unsigned n_calls = 0;

        EXPECT_EQ(sd_event_new(&event), 0);
        EXPECT(event_add_disabled_timer(event, &timer, CLOCK_BOOTTIME, 0, count_call, &n_calls) >=
               0);
        EXPECT(event_timer_arm_inexact(timer, 3600 * USEC_PER_SEC, 20) >= 0);
        EXPECT_EQ(accuracy_of(timer), 180 * USEC_PER_SEC);
        EXPECT_EQ(sd_event_run(event, 0), 0);
        EXPECT_EQ(n_calls, 0);
        /* 0 would be sd-event's default of 250 ms. */
        EXPECT(event_timer_arm_inexact(timer, 0, 20) >= 0);
        EXPECT_EQ(accuracy_of(timer), 1);
        EXPECT_EQ(sd_event_run(event, UINT64_MAX), 1);
        EXPECT_EQ(n_calls, 1);
        sd_event_source_disable_unref(timer);
        sd_event_unref(event);
}
