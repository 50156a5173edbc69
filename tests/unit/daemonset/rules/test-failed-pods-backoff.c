/* SPDX-License-Identifier: Apache-2.0 */
/* How soon a pod that ended by itself is made anew. */

#include "agent/daemonset/rules/failed-pods-backoff.h"
#include "common/clock.h"
#include "tests/test.h"

#define SECONDS USEC_PER_SEC

TEST(each_end_is_waited_for_twice_as_long_up_to_a_quarter_of_an_hour)
{
        static const unsigned delays[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900 };
        FailedPodsBackoff back_off = { 0 };
        uint64_t now = 1000 * SECONDS, again_at = 0;

        EXPECT(failed_pods_backoff_is_over(&back_off, "abcde", now, &again_at));
        for (size_t i = 0; i < N_ELEMENTS(delays); i++) {
                EXPECT(!failed_pods_backoff_is_over(&back_off, "abcde", now + 1, &again_at));
                EXPECT_EQ(again_at, now + delays[i] * SECONDS);
                now = again_at;
                EXPECT(!failed_pods_backoff_is_over(&back_off, "abcde", now - 1, &again_at));
                EXPECT(failed_pods_backoff_is_over(&back_off, "abcde", now, &again_at));
        }
}

TEST(another_revision_or_a_long_peace_begins_anew)
{
        FailedPodsBackoff back_off = { 0 };
        uint64_t now = 1000 * SECONDS, again_at = 0;

        EXPECT(failed_pods_backoff_is_over(&back_off, "abcde", now, &again_at));
        EXPECT(!failed_pods_backoff_is_over(&back_off, "abcde", now, &again_at));
        EXPECT(failed_pods_backoff_is_over(&back_off, "fghij", now, &again_at));
        EXPECT_EQ(back_off.delay_usec, 1 * SECONDS);

        EXPECT(failed_pods_backoff_is_over(&back_off, "fghij", now + 1 * SECONDS, &again_at));
        EXPECT_EQ(back_off.delay_usec, 2 * SECONDS);
        EXPECT(failed_pods_backoff_is_over(&back_off, "fghij", now + 1801 * SECONDS, &again_at));
        EXPECT_EQ(back_off.delay_usec, 4 * SECONDS);
        EXPECT(failed_pods_backoff_is_over(&back_off, "fghij", now + 3602 * SECONDS, &again_at));
        EXPECT_EQ(back_off.delay_usec, 1 * SECONDS);
}
