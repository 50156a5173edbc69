/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervise/turns.h"

#include "tests/test.h"

static unsigned order[16], n_served;

static void served(void *userdata) {
        order[n_served++] = *(unsigned *) userdata;
}

TEST(turns_are_served_in_order_and_never_more_than_allowed)
{
        static unsigned names[5] = { 0, 1, 2, 3, 4 };
        Turn turn[5] = { 0 };
        Turns turns;

        n_served = 0;
        turns_init(&turns, 2);
        for (size_t i = 0; i < 5; i++) {
                turn[i] = (Turn){ .on_turn = served, .userdata = &names[i] };
                turn_ask(&turns, &turn[i]);
        }
        EXPECT_EQ(n_served, 2);
        turn_ask(&turns, &turn[0]);   /* asking again changes nothing */
        turn_leave(&turns, &turn[3]); /* leaves the queue */
        turn_leave(&turns, &turn[0]);
        EXPECT_EQ(n_served, 3);
        turn_leave(&turns, &turn[1]);
        turn_leave(&turns, &turn[1]);
        EXPECT_EQ(n_served, 4);
        EXPECT_EQ(order[2], 2);
        EXPECT_EQ(order[3], 4);
        turn_leave(&turns, &turn[2]);
        turn_leave(&turns, &turn[4]);
        EXPECT_EQ(turns.held, 0);
        turn_ask(&turns, &turn[3]);
        EXPECT_EQ(order[4], 3);
}

static Turns quick;
static unsigned depth, deepest, n_quick;

static void gives_back_at_once(void *userdata) {
        depth++;
        deepest = MAX(deepest, depth);
        n_quick++;
        turn_leave(&quick, userdata);
        depth--;
}

TEST(turns_that_are_given_back_at_once_are_served_one_after_the_other)
{
        Turn turn[1000] = { 0 };

        turns_init(&quick, 0);
        for (size_t i = 0; i < N_ELEMENTS(turn); i++) {
                turn[i] = (Turn){ .on_turn = gives_back_at_once, .userdata = &turn[i] };
                quick.max = i == N_ELEMENTS(turn) - 1;
                turn_ask(&quick, &turn[i]);
        }
        EXPECT_EQ(n_quick, 1000);
        EXPECT_EQ(deepest, 1);
        EXPECT_EQ(quick.held, 0);
}
