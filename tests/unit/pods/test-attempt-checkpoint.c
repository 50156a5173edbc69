/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/attempt-checkpoint.h"
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
        AttemptCheckpoint parsed;
        cleanup_free char *parsed_id = NULL;

        attempt_checkpoint_print(&checkpoint, text);
        EXPECT_STREQ(text, "20000000 3 sha256:12ab 7 pr");
        attempt_checkpoint_parse(text, &parsed);
        parsed_id = parsed.image_id;
        EXPECT_EQ(parsed.next_delay_usec, 20000000);
        EXPECT_EQ(parsed.stop_signal, 3);
        EXPECT_STREQ(parsed_id, image_id);
        EXPECT_EQ(parsed.generation, 7);
        EXPECT(parsed.has_post_started && parsed.is_ready);
        EXPECT(!parsed.has_started && !parsed.is_killed);
}

TEST(the_checkpoints_of_older_agents_lack_fields)
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
