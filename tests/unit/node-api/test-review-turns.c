/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/access/review-turns.h"

#include "tests/test.h"

#include <errno.h>

static int items[64];

/* Adds 'n' reviews, and returns how many of them have a turn and how many wait. */
static void enter(ReviewTurns *turns, ReviewKind kind, int *first, size_t n, unsigned *n_turns,
                  unsigned *n_waiting) {
        *n_turns = *n_waiting = 0;
        for (size_t i = 0; i < n; i++) {
                int r = review_turns_enter(turns, kind, first + i);

                *n_turns += r > 0;
                *n_waiting += r == 0;
                EXPECT(r >= 0 || r == -EBUSY);
        }
}

TEST(unknown_users_leave_review_slots_to_known_users)
{
        ReviewTurns turns = { 0 };
        unsigned n_turns, n_waiting;

        enter(&turns, REVIEW_OF_STRANGER, items, 40, &n_turns, &n_waiting);
        EXPECT_EQ(n_turns, 6);
        EXPECT_EQ(n_waiting, 24);
        enter(&turns, REVIEW_OF_USER, items + 40, 11, &n_turns, &n_waiting);
        EXPECT_EQ(n_turns, 2);
        EXPECT_EQ(n_waiting, 8);
}

TEST(known_users_may_use_all_review_slots)
{
        ReviewTurns turns = { 0 };
        unsigned n_turns, n_waiting;

        enter(&turns, REVIEW_OF_USER, items, 41, &n_turns, &n_waiting);
        EXPECT_EQ(n_turns, 8);
        EXPECT_EQ(n_waiting, 32);
        EXPECT_EQ(review_turns_enter(&turns, REVIEW_OF_STRANGER, items + 41), -EBUSY);
}

TEST(known_users_overtake_waiting_unknown_users)
{
        ReviewTurns turns = { 0 };
        unsigned n_turns, n_waiting;

        enter(&turns, REVIEW_OF_STRANGER, items, 9, &n_turns, &n_waiting); /* 6, 7, 8 wait */
        enter(&turns, REVIEW_OF_USER, items + 9, 5, &n_turns, &n_waiting); /* 11, 12, 13 wait */
        EXPECT(review_turns_next(&turns) == NULL);
        review_turns_end(&turns, REVIEW_OF_STRANGER);
        EXPECT(review_turns_next(&turns) == items + 11);
        EXPECT(review_turns_next(&turns) == NULL);
        review_turns_leave_queue(&turns, REVIEW_OF_USER, items + 12); /* its client is gone */
        review_turns_leave_queue(&turns, REVIEW_OF_STRANGER, items + 7);
        review_turns_end(&turns, REVIEW_OF_STRANGER);
        EXPECT(review_turns_next(&turns) == items + 13);
        review_turns_end(&turns, REVIEW_OF_USER);
        EXPECT(review_turns_next(&turns) == items + 6);
        review_turns_end(&turns, REVIEW_OF_USER);
        EXPECT(review_turns_next(&turns) == items + 8);
        review_turns_end(&turns, REVIEW_OF_USER);
        EXPECT(review_turns_next(&turns) == NULL);
}

TEST(unknown_users_do_not_use_slots_reserved_for_known_users)
{
        ReviewTurns turns = { 0 };
        unsigned n_turns, n_waiting;

        enter(&turns, REVIEW_OF_USER, items, 2, &n_turns, &n_waiting);
        enter(&turns, REVIEW_OF_STRANGER, items + 2, 7, &n_turns, &n_waiting);
        EXPECT_EQ(n_turns, 6);
        EXPECT_EQ(n_waiting, 1);
        review_turns_end(&turns, REVIEW_OF_USER);
        EXPECT(review_turns_next(&turns) == NULL);
        review_turns_end(&turns, REVIEW_OF_STRANGER);
        EXPECT(review_turns_next(&turns) == items + 8);
}
