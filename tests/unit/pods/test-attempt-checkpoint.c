/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/container/attempt-checkpoint.h"
#include "common/cleanup.h"
#include "tests/test.h"

TEST(a_checkpoint_is_parsed_as_it_was_printed)
{
        char image_id[] = "sha256:12ab";
        const AttemptCheckpoint checkpoint = {
                .next_delay_usec = 20000000,
                .stop_signal = 3,
                .image_id = image_id,
                .generation = 7,
                .has_post_started = true,
                .is_ready = true,
        };
        char text[ATTEMPT_CHECKPOINT_MAX];
        cleanup_with(attempt_checkpoint_done) AttemptCheckpoint parsed = { 0 };

        attempt_checkpoint_print(&checkpoint, text);
        EXPECT_STREQ(text, "20000000 3 sha256:12ab 7 pr");
        attempt_checkpoint_parse(text, &parsed);
        EXPECT_EQ(parsed.next_delay_usec, 20000000);
        EXPECT_EQ(parsed.stop_signal, 3);
        EXPECT_STREQ(parsed.image_id, image_id);
        EXPECT_EQ(parsed.generation, 7);
        EXPECT(!parsed.user.is_known);
        EXPECT(parsed.has_post_started && parsed.is_ready);
        EXPECT(!parsed.has_started && !parsed.is_killed);
}

TEST(a_checkpoint_has_the_user_with_its_groups)
{
        static const struct {
                bool is_ready;
                size_t n_groups;
                const char *text;
        } cases[] = {
                { false, 0, "0 15  0  1000:2000:" },
                { true, 0, "0 15  0 r 1000:2000:" },
                { true, 2, "0 15  0 r 1000:2000:29,4294967295" },
        };
        int64_t groups[] = { 29, 4294967295 };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                const AttemptCheckpoint checkpoint = {
                        .stop_signal = 15,
                        .is_ready = cases[i].is_ready,
                        .user = { .is_known = true,
                                  .uid = 1000,
                                  .gid = 2000,
                                  .groups = { .items = groups, .n = cases[i].n_groups } },
                };
                char text[ATTEMPT_CHECKPOINT_MAX];
                cleanup_with(attempt_checkpoint_done) AttemptCheckpoint parsed = { 0 };

                attempt_checkpoint_print(&checkpoint, text);
                EXPECT_STREQ(text, cases[i].text);
                attempt_checkpoint_parse(text, &parsed);
                EXPECT(parsed.user.is_known && parsed.user.uid == 1000 && parsed.user.gid == 2000);
                EXPECT_EQ(parsed.is_ready, cases[i].is_ready);
                EXPECT_EQ(parsed.user.groups.n, cases[i].n_groups);
                for (size_t j = 0; j < parsed.user.groups.n; j++)
                        EXPECT_EQ(parsed.user.groups.items[j], groups[j]);
        }
}

TEST(a_user_with_more_groups_than_fit_is_left_out)
{
        int64_t groups[400] = { 0 };
        const AttemptCheckpoint checkpoint = {
                .stop_signal = 15,
                .user = { .is_known = true,
                          .groups = { .items = groups, .n = N_ELEMENTS(groups) } },
        };
        char text[ATTEMPT_CHECKPOINT_MAX];
        cleanup_with(attempt_checkpoint_done) AttemptCheckpoint parsed = { 0 };

        for (size_t i = 0; i < N_ELEMENTS(groups); i++)
                groups[i] = 100000 + (int64_t) i;
        attempt_checkpoint_print(&checkpoint, text);
        EXPECT_STREQ(text, "0 15  0 ");
        attempt_checkpoint_parse(text, &parsed);
        EXPECT(!parsed.user.is_known);
        EXPECT_EQ(parsed.stop_signal, 15);
}

TEST(the_checkpoints_of_older_agents_do_not_have_all_fields)
{
        AttemptCheckpoint parsed;
        cleanup_free char *parsed_id = NULL;

        attempt_checkpoint_parse("10000000", &parsed);
        EXPECT_EQ(parsed.next_delay_usec, 10000000);
        EXPECT(parsed.stop_signal == 0 && !parsed.image_id);
        attempt_checkpoint_parse("10000000 15 sha256:ab", &parsed);
        parsed_id = parsed.image_id;
        EXPECT_EQ(parsed.stop_signal, 15);
        EXPECT_STREQ(parsed_id, "sha256:ab");
        EXPECT(parsed.generation == 0 && !parsed.has_started);
        attempt_checkpoint_parse("", &parsed);
        EXPECT(parsed.next_delay_usec == 0 && !parsed.image_id);
}
