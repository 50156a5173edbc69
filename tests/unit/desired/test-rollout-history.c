/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/desired/rollout-history.h"

#include "common/cleanup.h"
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
static const char *decide(RolloutInput input, uint64_t now_seconds) {
        static char text[64];
        uint64_t again_at = 1;
        RolloutDecision decision;

        input.now = now_seconds * SEC;
        decision = rollout_decide(&input, &again_at);
        (void) snprintf(text, sizeof(text), "%s%s", decision_names[decision],
                        again_at > 0 ? " until " : "");
        if (again_at > 0)
                (void) snprintf(text + strlen(text), sizeof(text) - strlen(text), "%llu",
                                (unsigned long long) (again_at / SEC));
        return text;
}

static RolloutHistory two_revisions = { .tried = "two", .good = "one", .since = SINCE * SEC };

static RolloutInput input_of(const RolloutHistory *history) {
        return (RolloutInput){ .history = history, .deadline_usec = DEADLINE * SEC };
}

TEST(a_revision_that_is_not_ready_goes_back_at_its_deadline)
{
        const RolloutInput input = input_of(&two_revisions);

        EXPECT_STREQ(decide(input, SINCE + 59), "continues until 1060");
        EXPECT_STREQ(decide(input, SINCE + 60), "back");
}

TEST(a_revision_that_a_new_agent_finds_gets_half_of_its_deadline_again)
{
        RolloutInput input = input_of(&two_revisions);

        input.awake_since = (SINCE + 500) * SEC;
        EXPECT_STREQ(decide(input, SINCE + 501), "continues until 1530");
        EXPECT_STREQ(decide(input, SINCE + 530), "back");
        input.awake_since = (SINCE + 10) * SEC;
        EXPECT_STREQ(decide(input, SINCE + 50), "continues until 1060");
}

TEST(a_revision_is_good_when_it_stayed_ready_for_a_while)
{
        RolloutInput input = input_of(&two_revisions);

        input.is_ready = true;
        input.ready_since = (SINCE + 55) * SEC;
        EXPECT_STREQ(decide(input, SINCE + 56), "continues until 1065");
        EXPECT_STREQ(decide(input, SINCE + 64), "continues until 1065"); /* beyond the deadline */
        EXPECT_STREQ(decide(input, SINCE + 65), "good");
        input.deadline_usec = 4 * SEC;
        input.ready_since = (SINCE + 1) * SEC;
        EXPECT_STREQ(decide(input, SINCE + 2), "continues until 1003");
}

TEST(readiness_before_the_revision_does_not_make_it_good)
{
        RolloutInput input = input_of(&two_revisions);

        input.is_ready = true;
        input.ready_since = 1 * SEC;
        EXPECT_STREQ(decide(input, SINCE + 1), "continues until 1010");
}

TEST(a_pod_that_has_succeeded_is_good_at_once)
{
        RolloutInput input = input_of(&two_revisions);

        input.is_ready = true;
        EXPECT_STREQ(decide(input, SINCE + 1), "good");
}

TEST(without_a_deadline_or_a_good_revision_nothing_goes_back)
{
        const RolloutHistory first = { .tried = "one", .since = SINCE * SEC };
        RolloutInput input = input_of(&first);

        EXPECT_STREQ(decide(input, SINCE + 1000), "continues");
        input = input_of(&two_revisions);
        input.deadline_usec = 0;
        EXPECT_STREQ(decide(input, SINCE + 1000), "continues");
}

TEST(good_and_rolled_back_revisions_are_decided)
{
        const RolloutHistory good = { .tried = "one", .good = "one", .since = SINCE * SEC };
        const RolloutHistory failed = {
                .tried = "two", .good = "one", .failed = "two", .since = SINCE * SEC
        };

        EXPECT_STREQ(decide(input_of(&good), SINCE + 1000), "continues");
        EXPECT_STREQ(decide(input_of(&failed), SINCE + 1000), "continues");
        EXPECT(rollout_history_is_failed(&failed) && !rollout_history_is_failed(&good));
        EXPECT(!rollout_history_is_settled(&two_revisions));
}

/* A history at its second revision, which was rolled back. */
static void make_failed(RolloutHistory *history) {
        history->namespace = strdup("default");
        history->name = strdup("web-n");
        EXPECT(rollout_history_set_tried(history, "one", 1));
        REQUIRE(rollout_history_set_good(history, "one", "{\"kind\":\"Pod\"}", "sha256:12 -") == 0);
        EXPECT(rollout_history_set_tried(history, "two", 2));
        REQUIRE(rollout_history_set_failed(history, "it did not become ready") == 0);
}

TEST(another_edit_is_tried_again)
{
        cleanup_with(rollout_history_done) RolloutHistory history = { 0 };

        make_failed(&history);
        EXPECT(!rollout_history_set_tried(&history, "two", 3)); /* the same once more */
        EXPECT(rollout_history_is_failed(&history));
        EXPECT(rollout_history_set_tried(&history, "three", 4));
        EXPECT(!rollout_history_is_failed(&history) && !history.reason);
        EXPECT_EQ(history.number, 3);
        EXPECT_EQ(history.since, 4);
        EXPECT_STREQ(history.good, "one");
        EXPECT(rollout_history_set_tried(&history, "two", 5)); /* once more after another one */
        EXPECT(!rollout_history_is_failed(&history));
}

TEST(the_text_form_is_read_as_it_was_written)
{
        cleanup_with(rollout_history_done) RolloutHistory history = { 0 }, copy = { 0 };
        cleanup_free char *text = NULL, *again = NULL;

        make_failed(&history);
        history.source = OBJECT_SOURCE_URL;
        text = rollout_history_format(&history);
        REQUIRE(text && rollout_history_parse(text, &copy) == 0);
        EXPECT_EQ(copy.source, OBJECT_SOURCE_URL);
        again = rollout_history_format(&copy);
        EXPECT_STREQ(again, text);
        EXPECT_STREQ(copy.reason, "it did not become ready");
        EXPECT_STREQ(copy.good_pod, "{\"kind\":\"Pod\"}");
        EXPECT_EQ(copy.number, 2);
}

TEST(text_of_another_form_is_refused)
{
        static const char *const texts[] = {
                "mainstay-rollout 9\nn\nweb\n1\n\n1\n\n\n\n\n",
                "mainstay-rollout 1\nn\nweb\nx\n\n1\n\n\n\n\n",
                "mainstay-rollout 1\nn\nweb\n\n\n1\n\n\n\n\n",
                "mainstay-rollout 1\nn\nweb\n1\n0123456789abcdef0123456789abcdef0\n1\n\n\n\n\n",
        };

        for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
                cleanup_with(rollout_history_done) RolloutHistory copy = { 0 };

                EXPECT_EQ(rollout_history_parse(texts[i], &copy), -EBADMSG);
        }
}

/* The texts of earlier versions do not have the last line, or the last two. */
TEST(damaged_text_is_refused_wherever_it_ends)
{
        cleanup_with(rollout_history_done) RolloutHistory history = { 0 };
        cleanup_free char *text = NULL;

        size_t earlier, earliest;

        make_failed(&history);
        history.source = OBJECT_SOURCE_INDEX;
        text = rollout_history_format(&history);
        REQUIRE(text);
        earlier = strlen(text) - strlen("index\n");
        earliest = earlier - strlen("sha256:12 -\n");
        for (size_t n = strlen(text); n-- > 0;) {
                cleanup_with(rollout_history_done) RolloutHistory copy = { 0 };

                text[n] = '\0';
                EXPECT_EQ(rollout_history_parse(text, &copy),
                          n == earlier || n == earliest ? 0 : -EBADMSG);
                EXPECT_EQ(copy.source, OBJECT_SOURCE_NONE);
        }
}
