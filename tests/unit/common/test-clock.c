/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clock.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

/* This must hold on all machines: the following tests rely on the C library. */
_Static_assert(sizeof(time_t) == 8, "times must not end in 2038");

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

TEST(a_clock_is_set_if_it_is_not_older_than_the_program)
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
        /* A different stamp is converted again, and a stamp from before the clock was set counts as
         * now. */
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

TEST(times_after_2038_are_formatted_and_parsed)
{
        static const struct {
                const char *text;
                uint64_t seconds;
        } cases[] = {
                { "2038-01-19T03:14:07Z", INT32_MAX },
                { "2038-01-19T03:14:08Z", UINT64_C(2147483648) },
                { "2050-01-01T00:00:00Z", UINT64_C(2524608000) },
                { "2106-02-07T06:28:15Z", UINT32_MAX },
                { "2106-02-07T06:28:16Z", UINT64_C(4294967296) },
                { "2400-02-29T23:59:59Z", UINT64_C(13574649599) },
                { "9999-12-31T23:59:59Z", UINT64_C(253402300799) },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                char text[RFC3339_SIZE];
                uint64_t usec = 0;

                EXPECT_STREQ(format_rfc3339(text, cases[i].seconds * USEC_PER_SEC + 999999),
                             cases[i].text);
                EXPECT_EQ(parse_rfc3339(cases[i].text, &usec), 0);
                EXPECT_EQ(usec, cases[i].seconds * USEC_PER_SEC);
        }
}

TEST(times_until_the_year_3000_match_the_c_library)
{
        for (uint64_t day = 0; day < 376200; day++) {
                uint64_t seconds = day * 86400 + day * 7919 % 86400;
                time_t time = (time_t) seconds;
                struct tm tm, expected;

                utc_from_seconds(seconds, &tm);
                REQUIRE(gmtime_r(&time, &expected));
                REQUIRE(utc_to_seconds(&tm) == (int64_t) seconds);
                REQUIRE(tm.tm_year == expected.tm_year && tm.tm_mon == expected.tm_mon &&
                        tm.tm_mday == expected.tm_mday && tm.tm_hour == expected.tm_hour &&
                        tm.tm_min == expected.tm_min && tm.tm_sec == expected.tm_sec &&
                        tm.tm_wday == expected.tm_wday);
        }
}

TEST(a_leap_second_is_the_first_second_of_the_next_minute)
{
        static const struct {
                const char *text;
                uint64_t usec;
        } cases[] = {
                { "2016-12-31T23:59:60Z", UINT64_C(1483228800000000) },
                { "2016-12-31T23:59:60.25Z", UINT64_C(1483228800250000) },
                { "2017-01-01T05:29:60+05:30", UINT64_C(1483228800000000) },
                { "2016-12-31T15:59:60.999999999-08:00", UINT64_C(1483228800999999) },
        };
        uint64_t usec = 42;

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                EXPECT_EQ(parse_rfc3339(cases[i].text, &usec), 0);
                EXPECT_EQ(usec, cases[i].usec);
        }
        EXPECT_EQ(parse_rfc3339("2016-12-31T23:59:61Z", &usec), -EINVAL);
        EXPECT_EQ(parse_rfc3339("2016-12-31T23:60:00Z", &usec), -EINVAL);
}

#define NONE "\0\0\0\0"
#define ONE  "\0\0\0\1"
/* a zone "UTC", and a second at 1972-07-01 */
#define TZIF_HEADER "TZif2" NONE NONE NONE "\0\0\0" NONE NONE ONE NONE ONE "\0\0\0\4"
#define TZIF_ZONE   \
        NONE "\0\0" \
             "UTC\0"
#define TZIF_SECOND "\4\xb2\x58\0" ONE

/* Writes a zone like those in /usr/share/zoneinfo/right: all times after the leap second are a
 * second later. */
static void write_leap_zone(char path[static 32]) {
        static const char zone[] =
                TZIF_HEADER TZIF_ZONE TZIF_SECOND TZIF_HEADER TZIF_ZONE NONE TZIF_SECOND "\nUTC0\n";
        int fd;

        (void) snprintf(path, 32, "/tmp/test-zone-XXXXXX");
        fd = mkostemp(path, O_CLOEXEC);
        REQUIRE(fd >= 0 && write(fd, zone, sizeof(zone) - 1) == (ssize_t) sizeof(zone) - 1);
        (void) close(fd);
}

TEST(times_do_not_depend_on_the_time_zone)
{
        char leap_zone[32];
        const char *zones[] = { leap_zone,
                                "right/Europe/Berlin",
                                "Pacific/Kiritimati",
                                "Asia/Kathmandu",
                                "<+1459>-14:59:59",
                                "X-167Y,M3.2.0/-3,M11.1.0/100",
                                "nonsense/:",
                                "" };
        time_t new_year = 1483228800;
        struct tm tm;

        write_leap_zone(leap_zone);
        for (size_t i = 0; i < N_ELEMENTS(zones); i++) {
                char text[RFC3339_SIZE];
                uint64_t usec = 0;

                REQUIRE(setenv("TZ", zones[i], 1) >= 0);
                tzset();
                if (i == 0) /* this shows that the zone has leap seconds */
                        EXPECT(gmtime_r(&new_year, &tm) && tm.tm_sec == 59);
                EXPECT_STREQ(format_rfc3339(text, UINT64_C(1483228800000000)),
                             "2017-01-01T00:00:00Z");
                EXPECT_STREQ(format_rfc3339_nano(text, UINT64_C(4070908800000001)),
                             "2099-01-01T00:00:00.000001000Z");
                EXPECT_EQ(parse_rfc3339("2017-01-01T00:00:00Z", &usec), 0);
                EXPECT_EQ(usec, UINT64_C(1483228800000000));
                EXPECT_EQ(parse_rfc3339("2099-01-01T02:00:00+02:00", &usec), 0);
                EXPECT_EQ(usec, UINT64_C(4070908800000000));
        }
        REQUIRE(unsetenv("TZ") >= 0);
        (void) unlink(leap_zone);
}
