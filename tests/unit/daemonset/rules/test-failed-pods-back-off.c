/* SPDX-License-Identifier: Apache-2.0 */
/* The back-off of failed pods. */

#include "agent/daemonset/rules/failed-pods-back-off.h"
#include "common/clock.h"
#include "tests/test.h"

#define SECONDS USEC_PER_SEC

TEST(back_off_doubles_to_fifteen_minutes)
{
        static const unsigned delays[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900 };
        FailedPodsBackOff back_off = { 0 };
        uint64_t now = 1000 * SECONDS, again_at = 0;

        EXPECT(failed_pods_back_off_is_over(&back_off, "abcde", now, &again_at));
        for (size_t i = 0; i < N_ELEMENTS(delays); i++) {
                EXPECT(!failed_pods_back_off_is_over(&back_off, "abcde", now + 1, &again_at));
                EXPECT_EQ(again_at, now + delays[i] * SECONDS);
                now = again_at;
                EXPECT(!failed_pods_back_off_is_over(&back_off, "abcde", now - 1, &again_at));
                EXPECT(failed_pods_back_off_is_over(&back_off, "abcde", now, &again_at));
        }
}

TEST(back_off_is_reset_by_a_new_revision_or_a_long_pause)
{
        FailedPodsBackOff back_off = { 0 };
        uint64_t now = 1000 * SECONDS, again_at = 0;

        EXPECT(failed_pods_back_off_is_over(&back_off, "abcde", now, &again_at));
        EXPECT(!failed_pods_back_off_is_over(&back_off, "abcde", now, &again_at));
        EXPECT(failed_pods_back_off_is_over(&back_off, "fghij", now, &again_at));
        EXPECT_EQ(back_off.delay_usec, 1 * SECONDS);

        EXPECT(failed_pods_back_off_is_over(&back_off, "fghij", now + 1 * SECONDS, &again_at));
        EXPECT_EQ(back_off.delay_usec, 2 * SECONDS);
        EXPECT(failed_pods_back_off_is_over(&back_off, "fghij", now + 1801 * SECONDS, &again_at));
        EXPECT_EQ(back_off.delay_usec, 4 * SECONDS);
        EXPECT(failed_pods_back_off_is_over(&back_off, "fghij", now + 3602 * SECONDS, &again_at));
        EXPECT_EQ(back_off.delay_usec, 1 * SECONDS);
}
