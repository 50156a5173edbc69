/* SPDX-License-Identifier: Apache-2.0 */
/* The decisions about a rollout, and when they are made. */

#include "agent/model/rollout-deadline.h"
#include "common/clock.h"
#include "tests/test.h"

#define SEC USEC_PER_SEC

enum {
        SINCE = 1000,
        DEADLINE = 60
};

static const char *const decision_names[] = {
        [ROLLOUT_CONTINUES] = "continues",
        [ROLLOUT_IS_GOOD] = "good",
        [ROLLOUT_GOES_BACK] = "back",
};

/* "back", or "continues until 1060" */
static const char *decide(RolloutState state, uint64_t now_seconds) {
        static char text[64];
        uint64_t again_at = 1;
        RolloutDecision decision;

        state.now = now_seconds * SEC;
        decision = rollout_decide(&state, &again_at);
        (void) snprintf(text, sizeof(text), "%s%s", decision_names[decision],
                        again_at > 0 ? " until " : "");
        if (again_at > 0)
                (void) snprintf(text + strlen(text), sizeof(text) - strlen(text), "%llu",
                                (unsigned long long) (again_at / SEC));
        return text;
}

static const RolloutState two_revisions = { .deadline_usec = DEADLINE * SEC,
                                            .since = SINCE * SEC,
                                            .can_go_back = true };

TEST(a_revision_that_is_not_ready_is_rolled_back_at_its_deadline)
{
        const RolloutState state = two_revisions;

        EXPECT_STREQ(decide(state, SINCE + 59), "continues until 1060");
        EXPECT_STREQ(decide(state, SINCE + 60), "back");
}

TEST(a_revision_that_a_new_agent_finds_gets_half_of_its_deadline_again)
{
        RolloutState state = two_revisions;

        state.awake_since = (SINCE + 500) * SEC;
        EXPECT_STREQ(decide(state, SINCE + 501), "continues until 1530");
        EXPECT_STREQ(decide(state, SINCE + 530), "back");
        state.awake_since = (SINCE + 10) * SEC;
        EXPECT_STREQ(decide(state, SINCE + 50), "continues until 1060");
}

TEST(a_revision_is_good_after_it_has_stayed_ready)
{
        RolloutState state = two_revisions;

        state.is_ready = true;
        state.ready_since = (SINCE + 55) * SEC;
        EXPECT_STREQ(decide(state, SINCE + 56), "continues until 1065");
        EXPECT_STREQ(decide(state, SINCE + 64), "continues until 1065"); /* beyond the deadline */
        EXPECT_STREQ(decide(state, SINCE + 65), "good");
        state.deadline_usec = 4 * SEC;
        state.ready_since = (SINCE + 1) * SEC;
        EXPECT_STREQ(decide(state, SINCE + 2), "continues until 1003");
}

TEST(a_pod_that_has_succeeded_is_good_at_once)
{
        RolloutState state = two_revisions;

        state.is_ready = true;
        EXPECT_STREQ(decide(state, SINCE + 1), "good");
}

TEST(a_revision_is_not_rolled_back_without_a_good_one)
{
        RolloutState state = two_revisions;

        state.can_go_back = false;
        EXPECT_STREQ(decide(state, SINCE + 1000), "continues");
}

TEST(a_settled_rollout_stays_unchanged)
{
        RolloutState state = two_revisions;

        state.is_settled = true;
        EXPECT_STREQ(decide(state, SINCE + 1000), "continues");
        state.is_ready = true;
        EXPECT_STREQ(decide(state, SINCE + 1000), "continues");
}

TEST(a_revision_that_must_be_good_in_time_is_rolled_back_though_it_is_ready)
{
        RolloutState state = two_revisions;

        state.must_be_good_in_time = true;
        state.is_ready = true;
        state.ready_since = (SINCE + 55) * SEC;
        EXPECT_STREQ(decide(state, SINCE + 56), "continues until 1060");
        EXPECT_STREQ(decide(state, SINCE + 60), "back");
        state.ready_since = (SINCE + 45) * SEC;
        EXPECT_STREQ(decide(state, SINCE + 46), "continues until 1055");
        EXPECT_STREQ(decide(state, SINCE + 60), "good");
}

TEST(without_a_deadline_a_revision_is_good_as_soon_as_it_is_ready)
{
        RolloutState state = { .is_ready = true, .ready_since = SINCE * SEC };

        EXPECT_STREQ(decide(state, SINCE), "good");
}
