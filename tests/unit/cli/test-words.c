/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "agent/cli/cli.h"
#include "agent/cli/columns.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/clock.h"

#define HOUR INT64_C(3600)
#define DAY  (24 * HOUR)
#define YEAR (365 * DAY)

TEST(durations_are_printed_in_kubectl_format)
{
        static const struct {
                int64_t seconds;
                const char *text;
        } cases[] = {
                { -2, "<invalid>" },
                { -1, "0s" },
                { 0, "0s" },
                { 1, "1s" },
                { 119, "119s" },
                { 120, "2m" },
                { 121, "2m1s" },
                { 599, "9m59s" },
                { 600, "10m" },
                { 659, "10m" },
                { 3 * HOUR - 1, "179m" },
                { 3 * HOUR, "3h" },
                { 3 * HOUR + 60, "3h1m" },
                { 8 * HOUR - 1, "7h59m" },
                { 8 * HOUR, "8h" },
                { 48 * HOUR - 1, "47h" },
                { 48 * HOUR, "2d" },
                { 49 * HOUR, "2d1h" },
                { 8 * DAY - 1, "7d23h" },
                { 8 * DAY, "8d" },
                { 2 * YEAR - 1, "729d" },
                { 2 * YEAR, "2y" },
                { 2 * YEAR + DAY, "2y1d" },
                { 8 * YEAR, "8y" },
                { 9 * YEAR - 1, "8y" },
        };
        char buffer[DURATION_SIZE];

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_STREQ(format_duration(buffer, cases[i].seconds), cases[i].text);
}

TEST(missing_timestamp_gives_unknown_age)
{
        char buffer[DURATION_SIZE];

        EXPECT_STREQ(format_age(buffer, NULL, 0), "<unknown>");
        EXPECT_STREQ(format_age(buffer, "yesterday", 0), "<unknown>");
        EXPECT_STREQ(format_age(buffer, "2026-01-02T03:04:05Z", 1767323055 * USEC_PER_SEC), "10s");
        EXPECT_STREQ(format_age(buffer, "2026-01-02T03:04:05Z", 1767323044 * USEC_PER_SEC), "0s");
}

TEST(go_durations_are_parsed_by_the_cli)
{
        static const struct {
                const char *text;
                int r;
                uint64_t usec;
        } cases[] = {
                { "5s", 0, 5000000 },
                { "1h30m", 0, UINT64_C(5400000000) },
                { "1.5s", 0, 1500000 },
                { "300ms", 0, 300000 },
                { "0", 0, 0 },
                { "", -EINVAL, 0 },
                { "5", -EINVAL, 0 },
                { "s", -EINVAL, 0 },
                { "1d", -EINVAL, 0 },
                { "-5s", -EINVAL, 0 },
                { "1.2.3s", -EINVAL, 0 },
                { "1m 2s", -EINVAL, 0 },
                { "99999999999999h", -EINVAL, 0 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                uint64_t usec = 0;

                EXPECT_EQ(parse_duration(cases[i].text, &usec), cases[i].r);
                EXPECT_EQ(usec, cases[i].usec);
        }
}

TEST(misspelled_word_gets_a_suggestion)
{
        static const char *const words[] = { "get", "describe", "logs", "version" };
        static const struct {
                const char *word, *hint;
        } cases[] = {
                { "gte", "get" },
                { "gett", "get" },
                { "log", "logs" },
                { "descrbe", "describe" },
                { "versino", "version" },
                { "xyz", NULL },
                { "", NULL },
                { "frobnicate", NULL },
                { "describedescribedescribedescribedescribe", NULL },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_STREQ(find_suggestion(cases[i].word, words, N_ELEMENTS(words)),
                             cases[i].hint);
}

static char *in_columns(Columns columns, const char *text) {
        char *result = NULL;
        size_t length;
        FILE *out = open_memstream(&result, &length);

        EXPECT_EQ(columns_write(&columns, text, out), 0);
        fclose(out);
        return result;
}

TEST(columns_are_as_wide_as_their_block)
{
        cleanup_free char *table = in_columns(COLUMNS_TABLE, "NAME\tREADY\tIP\nx\t1/1\t::1\n");
        cleanup_free char *blocks =
                in_columns(COLUMNS_DESCRIPTION, "A:\tb\nLonger:\tc\nBlock:\n  X:\ty\n\tz\n");

        EXPECT_STREQ(table, "NAME   READY   IP\nx      1/1     ::1\n");
        EXPECT_STREQ(blocks, "A:       b\nLonger:  c\nBlock:\n  X:  y\n      z\n");
}

TEST(continued_table_keeps_its_widths)
{
        Columns columns = COLUMNS_TABLE;
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        EXPECT_EQ(columns_write(&columns, "a-long-name\tx\n", out), 0);
        EXPECT_EQ(columns_write(&columns, "short\tx\n", out), 0);
        fclose(out);
        EXPECT_STREQ(text, "a-long-name   x\nshort         x\n");
}

TEST(control_characters_are_made_visible)
{
        cleanup_free char *text = in_columns(COLUMNS_DESCRIPTION, "a\033[31m\rb\tö\n");

        EXPECT_STREQ(text, "a^[[31m^Mb  ö\n");
}
