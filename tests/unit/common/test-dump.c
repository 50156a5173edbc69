/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "tests/test.h"

typedef struct DumpedText {
        FILE *out;
        char *text;
        size_t length;
} DumpedText;

static void dump_start(DumpedText *dump) {
        *dump = (DumpedText){ 0 };
        dump->out = open_memstream(&dump->text, &dump->length);
        REQUIRE(dump->out);
}

static const char *dump_end(DumpedText *dump) {
        REQUIRE(fclose(dump->out) == 0);
        return dump->text;
}

TEST(sections_and_lines_are_indented)
{
        DumpedText dump;

        dump_start(&dump);
        dump_section(dump.out, "Agent");
        dump_line(dump.out, 1, "version: %s", "1.2");
        dump_section(dump.out, "Pods");
        dump_line(dump.out, 2, "state: ready");
        EXPECT_STREQ(dump_end(&dump), "Agent:\n  version: 1.2\n\nPods:\n    state: ready\n");
        free(dump.text);
}

TEST(a_long_line_is_truncated_and_stays_one_line)
{
        cleanup_free char *value = malloc((size_t) 2 * DUMP_LINE_MAX);
        DumpedText dump;

        REQUIRE(value);
        memset(value, 'x', (size_t) 2 * DUMP_LINE_MAX - 1);
        value[(size_t) 2 * DUMP_LINE_MAX - 1] = '\0';
        dump_start(&dump);
        dump_line(dump.out, 0, "error: %s", "no\nAgent:\033[2J");
        dump_line(dump.out, 0, "%s", value);
        (void) dump_end(&dump);
        EXPECT(strncmp(dump.text, "error: no Agent:?[2J\n", 21) == 0);
        EXPECT_EQ(dump.length, 21 + (size_t) DUMP_LINE_MAX);
        free(dump.text);
}

TEST(the_size_of_a_dump_is_limited)
{
        cleanup_free char *value = malloc(DUMP_LINE_MAX);
        DumpedText dump;

        REQUIRE(value);
        memset(value, 'x', DUMP_LINE_MAX - 1);
        value[DUMP_LINE_MAX - 1] = '\0';
        dump_start(&dump);
        for (size_t i = 0; i < DUMP_BYTES_MAX / KIB + 10; i++)
                dump_line(dump.out, 0, "%s", value);
        EXPECT(dump_is_full(dump.out));
        (void) dump_end(&dump);
        EXPECT(dump.length < DUMP_BYTES_MAX + DUMP_LINE_MAX);
        free(dump.text);
}

TEST(durations_are_printed_in_a_short_form)
{
        static const struct {
                uint64_t usec;
                const char *text;
        } rows[] = {
                { 0, "0.000s" },
                { 8312999, "8.312s" },
                { 303 * USEC_PER_SEC, "5m3s" },
                { 7500 * USEC_PER_SEC, "2h5m" },
                { UINT64_C(76) * 3600 * USEC_PER_SEC, "3d4h" },
        };
        char buffer[DUMP_DURATION_SIZE];

        for (size_t i = 0; i < N_ELEMENTS(rows); i++)
                EXPECT_STREQ(dump_format_duration(buffer, rows[i].usec), rows[i].text);
}

static int on_timer_unused(sd_event_source *source, uint64_t usec, void *userdata) {
        return 0;
}

TEST(armed_timers_are_printed_with_the_time_that_remains)
{
        sd_event *event = NULL;
        sd_event_source *timer = NULL;
        DumpedText dump;

        REQUIRE(sd_event_new(&event) >= 0);
        REQUIRE(sd_event_add_time_relative(event, &timer, CLOCK_BOOTTIME, 90 * USEC_PER_SEC, 0,
                                           on_timer_unused, NULL) >= 0);
        dump_start(&dump);
        dump_timer(dump.out, 1, "never", NULL);
        dump_timer(dump.out, 1, "back-off ends", timer);
        REQUIRE(sd_event_source_set_time(timer, 1) >= 0);
        dump_timer(dump.out, 1, "grace period ends", timer);
        REQUIRE(sd_event_source_set_enabled(timer, SD_EVENT_OFF) >= 0);
        dump_timer(dump.out, 1, "disarmed", timer);
        EXPECT_STREQ(dump_end(&dump), "  timer: back-off ends in 1m29s\n"
                                      "  timer: grace period ends now\n");
        free(dump.text);
        sd_event_source_disable_unref(timer);
        sd_event_unref(event);
}
