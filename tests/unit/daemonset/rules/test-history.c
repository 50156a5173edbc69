/* SPDX-License-Identifier: Apache-2.0 */
/* Revision histories: numbers, the limit, and the text form. */

#include "agent/daemonset/rules/history.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <errno.h>

static DaemonSetHistory make_history(void) {
        DaemonSetHistory history = { .namespace = strdup("default"), .name = strdup("d") };

        REQUIRE(history.namespace && history.name);
        return history;
}

static void add_revision(DaemonSetHistory *history, const char *hash) {
        REQUIRE(daemonset_history_set_template(history, hash, "{}", NULL, 5) >= 0);
}

/* "1:a 3:b" */
static void expect_revisions(const DaemonSetHistory *history, const char *expected) {
        char text[128] = "";
        size_t n = 0;

        for (size_t i = 0; i < history->revisions.n; i++)
                n += (size_t) snprintf(text + n, sizeof(text) - n, "%s%lld:%s", i > 0 ? " " : "",
                                       (long long) history->revisions.items[i].number,
                                       history->revisions.items[i].hash);
        EXPECT_STREQ(text, expected);
}

TEST(new_template_is_a_revision_and_an_old_one_gets_the_next_number)
{
        cleanup_with(daemonset_history_done) DaemonSetHistory history = make_history();

        EXPECT_EQ(daemonset_history_set_template(&history, "a", "{}", "why\nnot", 5), 1);
        EXPECT_EQ(daemonset_history_set_template(&history, "a", "{}", NULL, 6), 0);
        expect_revisions(&history, "1:a");
        EXPECT_STREQ(history.revisions.items[0].cause, "why not");
        add_revision(&history, "b");
        add_revision(&history, "a");
        expect_revisions(&history, "2:b 3:a");
        EXPECT_STREQ(daemonset_history_desired(&history), "a");
}

TEST(pinned_revision_is_desired_until_the_manifest_changes)
{
        cleanup_with(daemonset_history_done) DaemonSetHistory history = make_history();

        add_revision(&history, "a");
        add_revision(&history, "b");
        EXPECT_EQ(daemonset_history_pin(&history, "x", NULL, "r", 7), -ENOENT);
        EXPECT_EQ(daemonset_history_pin(&history, "a", NULL, "Undone\nhere", 7), 0);
        EXPECT_STREQ(daemonset_history_desired(&history), "a");
        EXPECT_STREQ(history.pin_reason, "Undone here");
        expect_revisions(&history, "2:b 3:a");
        EXPECT_EQ(daemonset_history_set_template(&history, "b", "{}", NULL, 8), 0);
        EXPECT_STREQ(daemonset_history_desired(&history), "a");
        add_revision(&history, "c");
        EXPECT_STREQ(daemonset_history_desired(&history), "c");
        EXPECT(!history.pin_reason);
}

TEST(pinning_the_revision_of_the_manifest_removes_the_pin)
{
        cleanup_with(daemonset_history_done) DaemonSetHistory history = make_history();

        add_revision(&history, "a");
        add_revision(&history, "b");
        REQUIRE(daemonset_history_pin(&history, "a", NULL, "x", 7) == 0);
        REQUIRE(daemonset_history_pin(&history, "b", NULL, "y", 8) == 0);
        EXPECT_STREQ(history.pinned, "");
        EXPECT_STREQ(daemonset_history_desired(&history), "b");
        REQUIRE(daemonset_history_pin(&history, "new", "{}", "Restarted", 9) == 0);
        EXPECT_STREQ(daemonset_history_desired(&history), "new");
}

TEST(rollout_lasts_until_the_desired_revision_is_available)
{
        cleanup_with(daemonset_history_done) DaemonSetHistory history = make_history();

        add_revision(&history, "a");
        EXPECT_EQ(history.rollout_since, 5);
        EXPECT(daemonset_history_mark_available(&history));
        EXPECT(!daemonset_history_mark_available(&history));
        EXPECT_EQ(history.rollout_since, 0);
        add_revision(&history, "b");
        EXPECT_EQ(history.rollout_since, 5);
        REQUIRE(daemonset_history_pin(&history, history.last_available, NULL, "Rolled back", 9) ==
                0);
        EXPECT_STREQ(daemonset_history_desired(&history), "a");
        EXPECT_EQ(history.rollout_since, 0);
}

TEST(history_can_be_rolled_back_only_during_a_rollout_and_to_a_good_revision)
{
        cleanup_with(daemonset_history_done) DaemonSetHistory history = make_history();

        add_revision(&history, "a");
        EXPECT(!daemonset_history_can_go_back(&history));
        EXPECT(daemonset_history_mark_available(&history));
        EXPECT(!daemonset_history_can_go_back(&history));
        add_revision(&history, "b");
        EXPECT(daemonset_history_can_go_back(&history));
        EXPECT(daemonset_history_mark_available(&history));
        EXPECT(!daemonset_history_can_go_back(&history));
}

TEST(oldest_revisions_beyond_the_limit_are_removed)
{
        cleanup_with(daemonset_history_done) DaemonSetHistory history = make_history();

        add_revision(&history, "a");
        (void) daemonset_history_mark_available(&history);
        add_revision(&history, "b");
        add_revision(&history, "c");
        add_revision(&history, "d");
        EXPECT(!daemonset_history_truncate(&history, 3));
        EXPECT(daemonset_history_truncate(&history, 2));
        expect_revisions(&history, "1:a 3:c 4:d");
        EXPECT(daemonset_history_truncate(&history, 0));
        expect_revisions(&history, "1:a 4:d");
}

TEST(text_form_is_read_back)
{
        cleanup_with(daemonset_history_done) DaemonSetHistory history = make_history(),
                                                              again = { 0 };
        cleanup_free char *text = NULL, *copy = NULL, *second = NULL;

        REQUIRE(daemonset_history_set_template(&history, "a", "{\"spec\":{}}", "cause and effect",
                                               5) == 1);
        (void) daemonset_history_mark_available(&history);
        add_revision(&history, "b");
        REQUIRE(daemonset_history_pin(&history, "a", NULL, "Undone by hand", 7) == 0);
        history.source = strdup("some file.yaml");
        history.set = strdup("{\"metadata\":{}}");
        history.is_orphaning = true;
        REQUIRE(history.source && history.set);
        text = daemonset_history_format(&history);
        REQUIRE(text);
        copy = strdup(text);
        REQUIRE(copy && daemonset_history_parse(copy, &again) == 0);
        second = daemonset_history_format(&again);
        EXPECT_STREQ(second, text);
        EXPECT_STREQ(daemonset_history_find_number(&again, 3)->template, "{\"spec\":{}}");
        EXPECT_STREQ(again.pin_reason, "Undone by hand");
        EXPECT_STREQ(again.source, "some file.yaml");
        EXPECT_STREQ(again.set, "{\"metadata\":{}}");
        EXPECT(again.is_orphaning);
}

TEST(invalid_text_form_is_refused)
{
        static const char *const cases[] = {
                "",
                "\n",
                "mainstay-daemonset 2\nname d\nnamespace n\n",
                "mainstay-daemonset 1\nname d\n",
                "mainstay-daemonset 1\nname d\nnamespace n\nrevision x\n",
                "mainstay-daemonset 1\nname d\nnamespace n\nrevision 1 a 5 \n",
                "mainstay-daemonset 1\nname d\nnamespace n\nfile much-too-long-a-hash\n",
                "mainstay-daemonset 1\nname d\nnamespace n\nrevision 2 a 5 {}\nrevision 1 b 5 {}\n",
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(daemonset_history_done) DaemonSetHistory history = { 0 };
                cleanup_free char *copy = strdup(cases[i]);

                REQUIRE(copy);
                if (daemonset_history_parse(copy, &history) != -EBADMSG)
                        test_fail(__FILE__, __LINE__, cases[i], "is taken");
        }
}
