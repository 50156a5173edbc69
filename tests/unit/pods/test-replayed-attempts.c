/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/container/replayed-attempts.h"
#include "common/cleanup.h"
#include "tests/test.h"

static ShimEvent event_of(unsigned attempt, ShimEventType type) {
        return (ShimEvent){ .type = type, .attempt = attempt, .exit_code = 3, .note = "10 15" };
}

TEST(the_last_two_replayed_attempts_are_kept_and_older_ones_removed)
{
        cleanup_with(replayed_attempts_done) ReplayedAttempts attempts = { 0 };
        ShimEvent event = event_of(4, SHIM_EVENT_EXITED);
        unsigned obsolete = 0;

        EXPECT(!replayed_attempts_add(&attempts, &event, &obsolete));
        event = event_of(5, SHIM_EVENT_EXITED);
        EXPECT(!replayed_attempts_add(&attempts, &event, &obsolete));
        event = event_of(6, SHIM_EVENT_STARTED);
        EXPECT(replayed_attempts_add(&attempts, &event, &obsolete));
        EXPECT_EQ(obsolete, 4);
        EXPECT_EQ(attempts.previous.attempt, 5);
        EXPECT_EQ(attempts.previous.exit.exit_code, 3);
        EXPECT_EQ(attempts.latest.attempt, 6);
        EXPECT_STREQ(attempts.latest.note, "10 15");
}

TEST(a_second_event_of_an_attempt_replaces_the_first)
{
        cleanup_with(replayed_attempts_done) ReplayedAttempts attempts = { 0 };
        ShimEvent event = event_of(0, SHIM_EVENT_STARTING);
        unsigned obsolete = 0;

        (void) replayed_attempts_add(&attempts, &event, &obsolete);
        event = event_of(0, SHIM_EVENT_STARTED);
        EXPECT(!replayed_attempts_add(&attempts, &event, &obsolete));
        EXPECT(attempts.latest.type == SHIM_EVENT_STARTED && !attempts.previous.is_known);
}

TEST(an_attempt_that_is_removed_already_is_not_removed_again)
{
        cleanup_with(replayed_attempts_done) ReplayedAttempts attempts = { 0 };
        ShimEvent event = event_of(0, SHIM_EVENT_EXITED);
        unsigned obsolete = 0;

        event.deleted = true;
        (void) replayed_attempts_add(&attempts, &event, &obsolete);
        event = event_of(1, SHIM_EVENT_EXITED);
        (void) replayed_attempts_add(&attempts, &event, &obsolete);
        event = event_of(2, SHIM_EVENT_STARTED);
        EXPECT(!replayed_attempts_add(&attempts, &event, &obsolete));
}
