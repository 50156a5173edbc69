/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "agent/http/log-line.h"
#include "common/cleanup.h"

#include <errno.h>
#include <malloc.h>

#define T1 "2026-01-02T03:04:05.000000001Z"
#define T2 "2026-01-02T03:04:05.000000002Z"

TEST(record_has_time_stream_tag_and_text)
{
        static const char line[] = T1 " stderr F two words";
        LogRecord record;
        uint64_t usec;

        REQUIRE(log_record_parse(line, sizeof(line) - 1, &record) >= 0);
        EXPECT_EQ(record.stream, LOG_STDERR);
        EXPECT(!record.is_partial);
        EXPECT_EQ(record.length, strlen("two words"));
        EXPECT(memcmp(record.text, "two words", record.length) == 0);
        EXPECT_EQ(log_record_time(&record, &usec), 0);
        EXPECT_EQ(usec, 1767323045000000);
}

TEST(invalid_record_is_refused)
{
        static const char *const lines[] = {
                "",
                " ",
                "hello",
                T1,
                T1 " stdout",
                T1 " stdin F x",
                T1 " stdout X x",
                T1 " stdout FF x",
                T1 " stdout  x",
                "2026-01-02T03:04:05.0000000000000000000000000000000001Z stdout F x",
        };
        LogRecord record;

        for (size_t i = 0; i < N_ELEMENTS(lines); i++)
                EXPECT_EQ(log_record_parse(lines[i], strlen(lines[i]), &record), -EBADMSG);
}

TEST(additional_tags_and_empty_text_are_valid)
{
        static const struct {
                const char *line;
                bool is_partial;
        } cases[] = { { T1 " stdout F ", false },
                      { T1 " stdout F", false },
                      { T1 " stdout P", true },
                      { T1 " stdout P:x ", true } };
        LogRecord record;

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                REQUIRE(log_record_parse(cases[i].line, strlen(cases[i].line), &record) >= 0);
                EXPECT_EQ(record.is_partial, cases[i].is_partial);
                EXPECT_EQ(record.length, 0);
        }
}

/* Pushes all lines and returns the output; "flush" flushes. */
static char *join(bool with_times, const char *const *lines) {
        LogJoiner joiner = { .with_times = with_times };
        char *text;

        for (; *lines; lines++) {
                LogRecord record;

                if (streq(*lines, "flush")) {
                        REQUIRE(log_joiner_flush(&joiner) >= 0);
                        continue;
                }
                REQUIRE(log_record_parse(*lines, strlen(*lines), &record) >= 0);
                REQUIRE(log_joiner_push(&joiner, &record) >= 0);
        }
        REQUIRE(asprintf(&text, "%.*s", (int) joiner.out.length, strna(joiner.out.data)) >= 0);
        log_joiner_done(&joiner);
        return text;
}

TEST(parts_of_a_line_are_joined)
{
        static const char *const lines[] = { T1 " stdout P ab", T2 " stdout P cd",
                                             T2 " stdout F ef", T2 " stdout F next", NULL };
        cleanup_free char *plain = join(false, lines), *timed = join(true, lines);

        EXPECT_STREQ(plain, "abcdef\nnext\n");
        EXPECT_STREQ(timed, T1 " abcdef\n" T2 " next\n");
}

TEST(lines_of_two_streams_are_not_mixed)
{
        static const char *const lines[] = { T1 " stdout P out-", T1 " stderr P err-",
                                             T1 " stderr F end", T1 " stdout F end", NULL };
        cleanup_free char *text = join(false, lines);

        EXPECT_STREQ(text, "err-end\nout-end\n");
}

TEST(flushed_line_continues_or_is_ended_by_the_other_stream)
{
        static const char *const continued[] = { T1 " stdout P prompt", "flush",
                                                 T2 " stdout F done", NULL };
        static const char *const ended[] = { T1 " stdout P prompt", "flush", T2 " stderr F warning",
                                             T2 " stdout F done", NULL };
        cleanup_free char *a = join(true, continued), *b = join(true, ended);

        EXPECT_STREQ(a, T1 " promptdone\n");
        EXPECT_STREQ(b, T1 " prompt\n" T2 " warning\n" T2 " done\n");
}

TEST(endless_line_is_output_in_pieces)
{
        LogJoiner joiner = { 0 };
        char line[16 * 1024];
        LogRecord record;
        size_t total = 0;

        memset(line, 'x', sizeof(line));
        memcpy(line, T1 " stdout P ", strlen(T1 " stdout P "));
        REQUIRE(log_record_parse(line, sizeof(line), &record) >= 0);
        for (unsigned i = 0; i < 1000; i++) {
                REQUIRE(log_joiner_push(&joiner, &record) >= 0);
                total += joiner.out.length;
                joiner.out.length = 0;
                EXPECT(malloc_usable_size(joiner.parts[LOG_STDOUT].data) <= 256 * KIB);
        }
        EXPECT(total > 990 * record.length);
        EXPECT(malloc_usable_size(joiner.out.data) <= 256 * KIB);
        log_joiner_done(&joiner);
}
