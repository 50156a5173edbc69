/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/duration.h"
#include "tests/test.h"

TEST(go_durations_are_parsed)
{
        static const struct {
                const char *text;
                uint64_t usec;
        } cases[] = {
                { "0", 0 },
                { "0s", 0 },
                { "300s", 300000000 },
                { "5m", 300000000 },
                { "5m0s", 300000000 },
                { "1h1m1s", 3661000000 },
                { "1.5h", 5400000000 },
                { "1.5s", 1500000 },
                { ".5s", 500000 },
                { "5.s", 5000000 },
                { "1ms", 1000 },
                { "1us", 1 },
                { "1µs", 1 },
                { "1999ns", 1 },
                { "+1s", 1000000 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                uint64_t usec = 1;

                EXPECT_EQ(duration_parse(cases[i].text, &usec), 0);
                EXPECT_EQ(usec, cases[i].usec);
        }
}

TEST(invalid_durations_are_refused)
{
        static const char *const bad[] = {
                "",
                "1",
                "s",
                "-1s",
                "1 s",
                "1d",
                ".s",
                ".",
                "1s1",
                "1S",
                "1.2.3s",
                "99999999999999999999s",
                "1e3s",
                "s1",
                "++1s",
                "1s ",
                "9999999999999h",
        };

        for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
                uint64_t usec = 7;

                EXPECT_EQ(duration_parse(bad[i], &usec), -22);
                EXPECT_EQ(usec, 7);
        }
}

TEST(whole_seconds_are_printed_in_go_format)
{
        static const struct {
                uint64_t seconds;
                const char *text;
        } cases[] = {
                { 0, "0s" },      { 10, "10s" },   { 60, "1m0s" },     { 80, "1m20s" },
                { 160, "2m40s" }, { 300, "5m0s" }, { 3600, "1h0m0s" }, { 3725, "1h2m5s" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                char buffer[DURATION_SIZE];

                EXPECT_STREQ(duration_format(buffer, cases[i].seconds * 1000000), cases[i].text);
        }
}
