/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/desired/rollout-history.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/test.h"

TEST(good_and_rolled_back_revisions_are_settled)
{
        const RolloutHistory good = { .tried = "one", .good = "one" };
        const RolloutHistory failed = { .tried = "two", .good = "one", .failed = "two" };

        const RolloutHistory two_revisions = { .tried = "two", .good = "one" };

        EXPECT(rollout_history_is_settled(&good) && rollout_history_is_settled(&failed));
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
        EXPECT(!rollout_history_set_tried(&history, "two", 3)); /* the failed revision again */
        EXPECT(rollout_history_is_failed(&history));
        EXPECT(rollout_history_set_tried(&history, "three", 4));
        EXPECT(!rollout_history_is_failed(&history) && !history.reason);
        EXPECT_EQ(history.number, 3);
        EXPECT_EQ(history.since, 4);
        EXPECT_STREQ(history.good, "one");
        EXPECT(rollout_history_set_tried(&history, "two", 5)); /* again, after another revision */
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

TEST(text_in_an_unknown_format_is_refused)
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

/* Texts that were written by earlier versions have one or two lines less at the end. */
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
