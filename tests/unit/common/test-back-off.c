/* SPDX-License-Identifier: Apache-2.0 */
#include "common/back-off.h"
#include "common/clock.h"
#include "tests/test.h"

TEST(the_delay_doubles_up_to_the_maximum)
{
        static const BackOffLimits limits = { 10 * USEC_PER_SEC, 300 * USEC_PER_SEC };
        static const unsigned seconds[] = { 10, 20, 40, 80, 160, 300, 300 };
        uint64_t delay = 0;

        for (size_t i = 0; i < N_ELEMENTS(seconds); i++) {
                delay = back_off_next_delay(delay, &limits);
                EXPECT_EQ(delay, seconds[i] * USEC_PER_SEC);
        }
}

TEST(a_maximum_below_twice_the_initial_delay_is_kept)
{
        static const BackOffLimits same = { USEC_PER_SEC, USEC_PER_SEC };

        EXPECT_EQ(back_off_next_delay(0, &same), USEC_PER_SEC);
        EXPECT_EQ(back_off_next_delay(USEC_PER_SEC, &same), USEC_PER_SEC);
}

TEST(jitter_adds_up_to_its_percentage)
{
        EXPECT_EQ(back_off_add_jitter(1000 * USEC_PER_MSEC, 20, 0), 1000 * USEC_PER_MSEC);
        EXPECT_EQ(back_off_add_jitter(1000 * USEC_PER_MSEC, 20, 1000), 1200 * USEC_PER_MSEC);
        for (unsigned i = 0; i < 1000; i++) {
                uint64_t some = back_off_add_jitter(USEC_PER_SEC, 20, back_off_random());

                EXPECT(some >= USEC_PER_SEC && some <= USEC_PER_SEC / 5 * 6);
        }
}
