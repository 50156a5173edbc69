/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clock.h"
#include "tests/test.h"

#include <errno.h>

TEST(times_are_formatted_as_in_metav1_and_cri)
{
        char buffer[RFC3339_SIZE];

        EXPECT_STREQ(format_rfc3339(buffer, 0), "1970-01-01T00:00:00Z");
        EXPECT_STREQ(format_rfc3339(buffer, UINT64_C(1767323045999999)), "2026-01-02T03:04:05Z");
        EXPECT_STREQ(format_rfc3339_nano(buffer, UINT64_C(1767323045123456)),
                     "2026-01-02T03:04:05.123456000Z");
        EXPECT_STREQ(format_rfc3339_nano(buffer, UINT64_C(1767323045000001)),
                     "2026-01-02T03:04:05.000001000Z");
}

TEST(formatted_times_are_parsed_again)
{
        static const uint64_t times[] = { 0, 1, UINT64_C(951782400000000),
                                          UINT64_C(1767323045123456), UINT64_C(4102444799999999) };

        for (size_t i = 0; i < N_ELEMENTS(times); i++) {
                char buffer[RFC3339_SIZE];
                uint64_t usec = 0;

                EXPECT_EQ(parse_rfc3339(format_rfc3339_nano(buffer, times[i]), &usec), 0);
                EXPECT_EQ(usec, times[i]);
        }
}

TEST(fractions_and_offsets_are_parsed)
{
        static const struct {
                const char *text;
                uint64_t usec;
        } cases[] = {
                { "2026-01-02T03:04:05Z", UINT64_C(1767323045000000) },
                { "2026-01-02T03:04:05.5Z", UINT64_C(1767323045500000) },
                { "2026-01-02T03:04:05.123456789Z", UINT64_C(1767323045123456) },
                { "2026-01-02T05:04:05+02:00", UINT64_C(1767323045000000) },
                { "2026-01-01T21:34:05.25-05:30", UINT64_C(1767323045250000) },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                uint64_t usec = 0;

                EXPECT_EQ(parse_rfc3339(cases[i].text, &usec), 0);
                EXPECT_EQ(usec, cases[i].usec);
        }
}

TEST(invalid_times_are_refused_and_write_nothing)
{
        static const char *const cases[] = {
                "",
                "yesterday",
                "2026-01-02",
                "2026-01-02T03:04:05",
                "2026-01-02T03:04:05+2",
                "2026-01-02T03:04:05+02:00x",
                "2026-01-02T03:04:05Zx",
                "2026-13-02T03:04:05Z",
                "1969-12-31T23:59:59Z",
                "1970-01-01T00:00:00+01:00",
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                uint64_t usec = 42;

                EXPECT_EQ(parse_rfc3339(cases[i], &usec), -EINVAL);
                EXPECT_EQ(usec, 42);
        }
}

TEST(both_clocks_advance)
{
        uint64_t boottime = now_boottime_usec();

        EXPECT(boottime > 0);
        EXPECT(now_boottime_usec() >= boottime);
        EXPECT(now_realtime_usec() > UINT64_C(1700000000) * USEC_PER_SEC);
}

TEST(a_clock_is_set_where_it_is_not_older_than_the_program)
{
        char text[CLOCK_DESCRIPTION_SIZE];

        EXPECT(!clock_is_set(0));
        EXPECT(clock_is_set(now_realtime_usec()));
        EXPECT_STREQ(clock_describe(text, 3600 * USEC_PER_SEC),
                     "the clock of this machine is not set, it says 1970-01-01");
        EXPECT_STREQ(clock_describe(text, UINT64_C(2085350400000000)),
                     "the clock of this machine says 2036-01-31");
}

TEST(a_stamp_keeps_its_steady_time_while_the_clock_is_set)
{
        SteadyClock clock = steady_clock_start();
        const uint64_t year = UINT64_C(365) * 86400 * USEC_PER_SEC;
        uint64_t stamp = now_realtime_usec() - 10 * USEC_PER_SEC, before;
        SteadyStamp since = { 0 };

        before = steady_stamp_convert(&since, &clock, stamp);
        EXPECT(before + 10 * USEC_PER_SEC <= steady_now_usec(&clock));
        EXPECT(before + 20 * USEC_PER_SEC > steady_now_usec(&clock));
        /* The machine's clock was set forward or back by a year. */
        since.realtime = stamp - year;
        EXPECT_EQ(steady_stamp_convert(&since, &clock, stamp - year), before);
        since.realtime = stamp + year;
        EXPECT_EQ(steady_stamp_convert(&since, &clock, stamp + year), before);
        /* Another stamp is converted again, and one from before the clock was set counts as now. */
        EXPECT(steady_stamp_convert(&since, &clock, stamp) != USEC_INFINITY);
        EXPECT_EQ(since.realtime, stamp);
        before = steady_now_usec(&clock);
        EXPECT(steady_stamp_convert(&since, &clock, 60 * USEC_PER_SEC) >= before);
}

TEST(the_steady_clock_does_not_move_when_the_clock_is_set)
{
        SteadyClock clock = steady_clock_start();
        const uint64_t hour = 3600 * USEC_PER_SEC, second = USEC_PER_SEC;
        uint64_t now = steady_now_usec(&clock), stamp;

        EXPECT(now + second > now_realtime_usec() && now < now_realtime_usec() + second);
        /* The machine's clock was set forward or back by an hour since the start. */
        clock.offset -= hour;
        now = steady_now_usec(&clock);
        EXPECT(now + hour + second > now_realtime_usec() &&
               now + hour < now_realtime_usec() + second);
        stamp = steady_from_realtime_usec(&clock, now_realtime_usec() - 10 * second);
        EXPECT(stamp + 10 * second <= steady_now_usec(&clock));
        EXPECT(stamp + 11 * second > steady_now_usec(&clock));
        /* A time in the future counts as now. */
        stamp = steady_from_realtime_usec(&clock, now_realtime_usec() + hour);
        EXPECT(stamp <= steady_now_usec(&clock) && stamp + second > steady_now_usec(&clock));
        EXPECT_EQ(steady_from_realtime_usec(&(SteadyClock){ 0 }, 0), 0);
}
