/* SPDX-License-Identifier: Apache-2.0 */
/* The progress deadline: when a revision is good, and when it is rolled back. */

#include "agent/daemonset/rules/progress-deadline.h"
#include "common/clock.h"
#include "tests/test.h"

#define S USEC_PER_SEC

static char deadline_key[] = "mainstay.dev/progress-deadline-seconds", deadline_value[] = "30";
static KeyValue deadline = { deadline_key, deadline_value };

static void expect_roll_back(DaemonSetRollout rollout, uint64_t now, bool expected,
                             uint64_t expected_again_at) {
        uint64_t again_at = 1;

        rollout.now = now;
        EXPECT_EQ(daemonset_should_roll_back(&rollout, &again_at), expected);
        EXPECT_EQ(again_at, expected_again_at);
}

TEST(rollout_is_rolled_back_at_its_deadline)
{
        ControllerRevision revisions[] = { { .number = 1, .hash = "good" },
                                           { .number = 2, .hash = "bad" } };
        DaemonSetHistory history = { .revisions = { revisions, 2 },
                                     .template_hash = "bad",
                                     .last_available = "good",
                                     .rollout_since = 100 * S };
        DaemonSet set = { .metadata.annotations = { &deadline, 1 } };
        DaemonSetRollout rollout = { .set = &set, .history = &history };

        expect_roll_back(rollout, 129 * S, false, 130 * S);
        expect_roll_back(rollout, 130 * S, true, 0);

        rollout.awake_since = 200 * S; /* half of the deadline again */
        expect_roll_back(rollout, 214 * S, false, 215 * S);
        expect_roll_back(rollout, 215 * S, true, 0);

        rollout.verdict = DAEMONSET_SHOULD_STOP;
        expect_roll_back(rollout, 900 * S, false, 0);
        rollout.verdict = DAEMONSET_SHOULD_RUN;
        history.rollout_since = 0; /* it is available */
        expect_roll_back(rollout, 900 * S, false, 0);
        history.rollout_since = 100 * S;
        history.last_available[0] = '\0'; /* there is nothing to return to */
        expect_roll_back(rollout, 900 * S, false, 0);
        (void) snprintf(history.last_available, REVISION_HASH_SIZE, "bad");
        expect_roll_back(rollout, 900 * S, false, 0);
        (void) snprintf(history.last_available, REVISION_HASH_SIZE, "good");
        set.metadata.annotations.n = 0;
        expect_roll_back(rollout, 900 * S, false, 0);
}

TEST(revision_is_proven_after_half_of_the_deadline_or_ten_seconds)
{
        DaemonSet set = { .metadata.annotations = { &deadline, 1 } };
        DaemonSetRollout rollout = { .set = &set, .ready_since = 100 * S, .now = 109 * S };
        uint64_t again_at;

        EXPECT(!daemonset_is_revision_proven(&rollout, &again_at));
        EXPECT_EQ(again_at, 0);
        rollout.is_available = true;
        EXPECT(!daemonset_is_revision_proven(&rollout, &again_at));
        EXPECT_EQ(again_at, 110 * S);
        rollout.now = 110 * S;
        EXPECT(daemonset_is_revision_proven(&rollout, &again_at));
        rollout.now = 100 * S;
        set.metadata.annotations.n = 0;
        EXPECT(daemonset_is_revision_proven(&rollout, &again_at));
}
