/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/memory-trim-timer.h"
#include "tests/test.h"

/* Returns whether the timer is armed, according to the dump. */
static bool is_armed(void) {
        cleanup_free char *text = NULL;
        size_t length = 0;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out);
        memory_trim_timer_dump(out, 1);
        REQUIRE(fclose(out) == 0);
        EXPECT(length == 0 || strstr(text, "memory is released in "));
        return length > 0;
}

TEST(timer_is_armed_by_a_request_and_fires_once)
{
        sd_event *event = NULL;

        memory_trim_timer_schedule();
        memory_trim_timer_restart();
        EXPECT(!is_armed());

        REQUIRE(sd_event_new(&event) >= 0);
        REQUIRE(memory_trim_timer_start(event) >= 0);
        EXPECT(!is_armed());
        memory_trim_timer_schedule();
        EXPECT(is_armed());
        for (int i = 0; i < 100; i++)
                memory_trim_timer_restart();
        EXPECT(is_armed());
        while (is_armed())
                REQUIRE(sd_event_run(event, UINT64_MAX) >= 0);
        memory_trim_timer_restart();
        EXPECT(is_armed());

        memory_trim_timer_end();
        EXPECT(!is_armed());
        memory_trim_timer_restart();
        EXPECT(!is_armed());
        EXPECT(!sd_event_unref(event));
}
