/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static uint64_t now_usec(clockid_t clock) {
        struct timespec ts = { 0 };

        (void) clock_gettime(clock, &ts);
        return (uint64_t) ts.tv_sec * USEC_PER_SEC + (uint64_t) ts.tv_nsec / 1000;
}

uint64_t now_realtime_usec(void) {
        return now_usec(CLOCK_REALTIME);
}

uint64_t now_boottime_usec(void) {
        return now_usec(CLOCK_BOOTTIME);
}

uint64_t now_awake_usec(void) {
        return now_usec(CLOCK_AWAKE);
}

SteadyClock steady_clock_start(void) {
        return (SteadyClock){ .offset = now_realtime_usec() - now_boottime_usec() };
}

uint64_t steady_now_usec(const SteadyClock *clock) {
        return now_boottime_usec() + clock->offset;
}

static uint64_t slept_usec(void) {
        uint64_t awake = now_awake_usec(), boottime = now_boottime_usec();

        return boottime > awake ? boottime - awake : 0;
}

AwakeSince awake_since_start(const SteadyClock *clock) {
        return (AwakeSince){ .usec = steady_now_usec(clock), .slept = slept_usec() };
}

/* The two clocks are not read at the same instant, but a suspension takes more than a second. */
uint64_t awake_since_usec(AwakeSince *awake, const SteadyClock *clock) {
        if (slept_usec() > awake->slept + USEC_PER_SEC)
                *awake = awake_since_start(clock);
        return awake->usec;
}

uint64_t steady_from_realtime_usec(const SteadyClock *clock, uint64_t realtime_usec) {
        uint64_t now = now_realtime_usec(), steady = steady_now_usec(clock);
        uint64_t age = now > realtime_usec ? now - realtime_usec : 0;

        return steady > age ? steady - age : 0;
}

uint64_t steady_stamp_convert(SteadyStamp *stamp, const SteadyClock *clock,
                              uint64_t realtime_usec) {
        bool is_dated = clock_is_set(realtime_usec) || !clock_is_set(now_realtime_usec());

        if (stamp->realtime != realtime_usec || realtime_usec == 0)
                *stamp = (SteadyStamp){ .realtime = realtime_usec,
                                        .steady = is_dated ? steady_from_realtime_usec(
                                                                     clock, realtime_usec)
                                                           : steady_now_usec(clock) };
        return stamp->steady;
}

/* 2026-01-01; no build of this source is older */
#define BUILT_USEC (UINT64_C(1767225600) * USEC_PER_SEC)

bool clock_is_set(uint64_t realtime_usec) {
        return realtime_usec >= BUILT_USEC;
}

#define DAY_SECONDS 86400
#define DAYS_OF_400 146097 /* years of the Gregorian calendar */
#define DAYS_BEFORE_1970                                                        \
        719468 /* since 0000-03-01: years that start in March end with February \
                */

void utc_from_seconds(uint64_t seconds, struct tm *ret) {
        uint64_t days = seconds / DAY_SECONDS + DAYS_BEFORE_1970;
        unsigned rest = (unsigned) (seconds % DAY_SECONDS), day = (unsigned) (days % DAYS_OF_400);
        unsigned year = (day - day / 1460 + day / 36524 - day / (DAYS_OF_400 - 1)) / 365, month;

        day -= 365 * year + year / 4 - year / 100;
        month = (5 * day + 2) / 153;
        *ret = (struct tm){
                .tm_year = (int) (days / DAYS_OF_400 * 400 + year) - 1900 + (month >= 10),
                .tm_mon = (int) (month + 2) % 12,
                .tm_mday = (int) (day - (153 * month + 2) / 5 + 1),
                .tm_hour = (int) (rest / 3600),
                .tm_min = (int) (rest / 60 % 60),
                .tm_sec = (int) (rest % 60),
                .tm_wday = (int) ((days + 3) % 7),
        };
}

int64_t utc_to_seconds(const struct tm *tm) {
        int64_t year = tm->tm_year + INT64_C(1900) - (tm->tm_mon < 2);
        int64_t days = 365 * year + year / 4 - year / 100 + year / 400 - DAYS_BEFORE_1970;

        days += (153 * ((tm->tm_mon + 10) % 12) + 2) / 5 + tm->tm_mday - 1;
        return days * DAY_SECONDS + tm->tm_hour * INT64_C(3600) + tm->tm_min * INT64_C(60) +
               tm->tm_sec;
}

static size_t format_seconds(char buffer[RFC3339_SIZE], uint64_t realtime_usec) {
        struct tm tm;

        utc_from_seconds(realtime_usec / USEC_PER_SEC, &tm);
        return strftime(buffer, RFC3339_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
}

char *format_rfc3339(char buffer[RFC3339_SIZE], uint64_t realtime_usec) {
        size_t n = format_seconds(buffer, realtime_usec);

        (void) snprintf(buffer + n, RFC3339_SIZE - n, "Z");
        return buffer;
}

char *format_rfc3339_nano(char buffer[RFC3339_SIZE], uint64_t realtime_usec) {
        size_t n = format_seconds(buffer, realtime_usec);

        (void) snprintf(buffer + n, RFC3339_SIZE - n, ".%06u000Z",
                        (unsigned) (realtime_usec % USEC_PER_SEC));
        return buffer;
}

const char *clock_describe(char buffer[CLOCK_DESCRIPTION_SIZE], uint64_t realtime_usec) {
        char text[RFC3339_SIZE];

        format_rfc3339(text, realtime_usec);
        (void) snprintf(buffer, CLOCK_DESCRIPTION_SIZE, "the clock of this machine %ssays %.*s",
                        clock_is_set(realtime_usec) ? "" : "is not set, it ",
                        (int) sizeof("2036-01-31") - 1, text);
        return buffer;
}

/* The fraction after '.', in microseconds; advances '*p'. */
static uint64_t parse_second_fraction(const char **p) {
        uint64_t usec = 0, unit = USEC_PER_SEC / 10;

        if (**p != '.')
                return 0;
        for ((*p)++; **p >= '0' && **p <= '9'; (*p)++, unit /= 10)
                usec += (uint64_t) (**p - '0') * unit;
        return usec;
}

int parse_rfc3339(const char *text, uint64_t *ret_realtime_usec) {
        struct tm tm = { 0 };
        const char *p = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
        int64_t offset_sec = 0, seconds;
        uint64_t usec;

        if (!p || tm.tm_sec > 60) /* strptime accepts 61, which no clock shows */
                return -EINVAL;
        usec = parse_second_fraction(&p);
        if (*p == '+' || *p == '-') {
                unsigned hours, minutes;
                int n = 0;

                if (sscanf(p + 1, "%2u:%2u%n", &hours, &minutes, &n) != 2 || n != 5 || p[6] != '\0')
                        return -EINVAL;
                offset_sec = (int64_t) (hours * 3600 + minutes * 60) * (*p == '-' ? -1 : 1);
        } else if (!streq(p, "Z"))
                return -EINVAL;
        seconds = utc_to_seconds(&tm) - offset_sec;
        if (seconds < 0)
                return -EINVAL;
        *ret_realtime_usec = (uint64_t) seconds * USEC_PER_SEC + usec;
        return 0;
}
