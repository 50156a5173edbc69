/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/words.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

json_t *json_walk(const json_t *object, const char *const *keys) {
        json_t *value = NULL;

        for (; *keys; keys++) {
                value = json_object_get(object, *keys);
                object = value;
        }
        return value;
}

/* kubectl's steps: the coarser the unit, the longer the finer unit beside it is shown. A row
 * applies below 'limit' seconds; 'fine' is 0 where the coarse unit is shown alone. */
#define MINUTE INT64_C(60)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define YEAR   (365 * DAY)

/* clang-format off */
static const struct {
        int64_t limit;
        int64_t coarse;
        char coarse_letter;
        int64_t fine;
        char fine_letter;
} steps[] = {
        {   2 * MINUTE, 1,      's', 0,      '\0' },
        {  10 * MINUTE, MINUTE, 'm', 1,      's'  },
        {   3 * HOUR,   MINUTE, 'm', 0,      '\0' },
        {   8 * HOUR,   HOUR,   'h', MINUTE, 'm'  },
        {   2 * DAY,    HOUR,   'h', 0,      '\0' },
        {   8 * DAY,    DAY,    'd', HOUR,   'h'  },
        {   2 * YEAR,   DAY,    'd', 0,      '\0' },
        {   8 * YEAR,   YEAR,   'y', DAY,    'd'  },
        { INT64_MAX,    YEAR,   'y', 0,      '\0' },
};
/* clang-format on */

char *format_duration(char buffer[DURATION_SIZE], int64_t seconds) {
        size_t i = 0;
        int64_t fine;

        /* The clocks of two machines may differ a little. */
        if (seconds < -1) {
                (void) snprintf(buffer, DURATION_SIZE, "<invalid>");
                return buffer;
        }
        seconds = MAX(seconds, 0);
        while (seconds >= steps[i].limit && i + 1 < N_ELEMENTS(steps))
                i++;
        fine = steps[i].fine ? seconds % steps[i].coarse / steps[i].fine : 0;
        if (fine)
                (void) snprintf(buffer, DURATION_SIZE, "%lld%c%lld%c",
                                (long long) (seconds / steps[i].coarse), steps[i].coarse_letter,
                                (long long) fine, steps[i].fine_letter);
        else
                (void) snprintf(buffer, DURATION_SIZE, "%lld%c",
                                (long long) (seconds / steps[i].coarse), steps[i].coarse_letter);
        return buffer;
}

char *format_age(char buffer[DURATION_SIZE], const char *time, uint64_t now_usec) {
        uint64_t usec;

        if (!time || parse_rfc3339(time, &usec) < 0) {
                (void) snprintf(buffer, DURATION_SIZE, "<unknown>");
                return buffer;
        }
        return format_duration(buffer,
                               ((int64_t) now_usec - (int64_t) usec) / (int64_t) USEC_PER_SEC);
}

/* clang-format off */
static const struct {
        const char *name;
        double usec;
} units[] = {
        { "ns", 1e-3 }, { "us", 1 }, { "µs", 1 }, { "ms", 1e3 }, { "s", 1e6 }, { "m", 60e6 }, { "h", 3600e6 },
};
/* clang-format on */

/* The length in microseconds of the unit at the start of 'text', up to the next digit, or 0. */
static double parse_go_duration_unit(const char *text, size_t *ret_length) {
        size_t length = strcspn(text, "0123456789.");

        for (size_t i = 0; i < N_ELEMENTS(units); i++) {
                if (strlen(units[i].name) == length && strncmp(text, units[i].name, length) == 0) {
                        *ret_length = length;
                        return units[i].usec;
                }
        }
        return 0;
}

int parse_duration(const char *text, uint64_t *ret_usec) {
        double total = 0;

        if (streq(text, "0")) {
                *ret_usec = 0;
                return 0;
        }
        if (*text == '\0')
                return -EINVAL;
        while (*text) {
                size_t digits = strspn(text, "0123456789."), length;
                char number[32], *end;
                double value, unit;

                if (digits == 0 || digits >= sizeof(number))
                        return -EINVAL;
                memcpy(number, text, digits);
                number[digits] = '\0';
                value = strtod(number, &end);
                unit = parse_go_duration_unit(text + digits, &length);
                if (*end != '\0' || unit <= 0)
                        return -EINVAL;
                total += value * unit;
                text += digits + length;
        }
        if (total >= 9e18)
                return -EINVAL;
        *ret_usec = (uint64_t) total;
        return 0;
}

const char *format_long_time(char buffer[LONG_TIME_SIZE], const char *time) {
        uint64_t usec;
        time_t seconds;
        struct tm tm;

        if (!time || parse_rfc3339(time, &usec) < 0)
                return strna(time);
        seconds = (time_t) (usec / USEC_PER_SEC);
        if (!localtime_r(&seconds, &tm))
                return time;
        (void) strftime(buffer, LONG_TIME_SIZE, "%a, %d %b %Y %H:%M:%S %z", &tm);
        return buffer;
}

void write_quoted(const char *text, FILE *out) {
        cleanup_free char *copy = strdup(text);

        if (!copy)
                return;
        utf8_sanitize(copy);
        fputs(copy, out);
}
