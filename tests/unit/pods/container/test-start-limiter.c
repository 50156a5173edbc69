/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/container/start-limiter.h"

#include "tests/test.h"

static unsigned order[16], n_served;

static void record_acquired(void *userdata) {
        order[n_served++] = *(unsigned *) userdata;
}

TEST(start_slots_are_granted_in_order_up_to_the_limit)
{
        static unsigned names[5] = { 0, 1, 2, 3, 4 };
        StartSlot turn[5] = { 0 };
        StartLimiter turns;

        n_served = 0;
        start_limiter_init(&turns, 2);
        for (size_t i = 0; i < 5; i++) {
                turn[i] = (StartSlot){ .on_acquired = record_acquired, .userdata = &names[i] };
                start_limiter_acquire(&turns, &turn[i]);
        }
        EXPECT_EQ(n_served, 2);
        start_limiter_acquire(&turns, &turn[0]); /* asking again changes nothing */
        start_limiter_release(&turns, &turn[3]); /* leaves the queue */
        start_limiter_release(&turns, &turn[0]);
        EXPECT_EQ(n_served, 3);
        start_limiter_release(&turns, &turn[1]);
        start_limiter_release(&turns, &turn[1]);
        EXPECT_EQ(n_served, 4);
        EXPECT_EQ(order[2], 2);
        EXPECT_EQ(order[3], 4);
        start_limiter_release(&turns, &turn[2]);
        start_limiter_release(&turns, &turn[4]);
        EXPECT_EQ(turns.held, 0);
        start_limiter_acquire(&turns, &turn[3]);
        EXPECT_EQ(order[4], 3);
}

static StartLimiter quick;
static unsigned depth, deepest, n_quick;

static void gives_back_at_once(void *userdata) {
        depth++;
        deepest = MAX(deepest, depth);
        n_quick++;
        start_limiter_release(&quick, userdata);
        depth--;
}

TEST(slots_released_at_once_are_granted_without_recursion)
{
        StartSlot turn[1000] = { 0 };

        start_limiter_init(&quick, 0);
        for (size_t i = 0; i < N_ELEMENTS(turn); i++) {
                turn[i] = (StartSlot){ .on_acquired = gives_back_at_once, .userdata = &turn[i] };
                quick.max = i == N_ELEMENTS(turn) - 1;
                start_limiter_acquire(&quick, &turn[i]);
        }
        EXPECT_EQ(n_quick, 1000);
        EXPECT_EQ(deepest, 1);
        EXPECT_EQ(quick.held, 0);
}
