/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/duration.h"

#include "common/clock.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static const struct {
        const char *name;
        uint64_t nsec;
} units[] = {
        /* Longer names first, because "ms" starts like "m". */
        { "ns", 1 },
        { "us", 1000 },
        { "µs", 1000 },
        { "μs", 1000 },
        { "ms", 1000000 },
        { "s", 1000000000 },
        { "m", UINT64_C(60) * 1000000000 },
        { "h", UINT64_C(3600) * 1000000000 },
};

/* Advances past a unit and returns its length, or 0. */
static uint64_t parse_duration_unit(const char **text) {
        for (size_t i = 0; i < N_ELEMENTS(units); i++) {
                size_t n = strlen(units[i].name);

                if (strncmp(*text, units[i].name, n) == 0) {
                        *text += n;
                        return units[i].nsec;
                }
        }
        return 0;
}

/* A part such as "1.5h". The fraction is less than a unit, so it cannot overflow. */
static int parse_duration_part(const char **text, uint64_t *total_nsec) {
        const char *p = *text, *fraction;
        uint64_t whole = 0, unit, part;

        if (!isdigit((unsigned char) *p) && !(*p == '.' && isdigit((unsigned char) p[1])))
                return -EINVAL;
        for (; isdigit((unsigned char) *p); p++)
                if (__builtin_mul_overflow(whole, 10, &whole) ||
                    __builtin_add_overflow(whole, (uint64_t) (*p - '0'), &whole))
                        return -EINVAL;
        fraction = *p == '.' ? ++p : NULL;
        while (fraction && isdigit((unsigned char) *p))
                p++;
        unit = parse_duration_unit(&p);
        if (unit == 0)
                return -EINVAL;
        if (__builtin_mul_overflow(whole, unit, &whole) ||
            __builtin_add_overflow(*total_nsec, whole, total_nsec))
                return -EINVAL;
        for (part = unit / 10; fraction && isdigit((unsigned char) *fraction); part /= 10)
                *total_nsec += (uint64_t) (*fraction++ - '0') * part;
        *text = p;
        return 0;
}

int duration_parse(const char *text, uint64_t *ret_usec) {
        uint64_t total_nsec = 0;

        text += *text == '+';
        if (streq(text, "0")) {
                *ret_usec = 0;
                return 0;
        }
        do
                if (parse_duration_part(&text, &total_nsec) < 0)
                        return -EINVAL;
        while (*text);
        *ret_usec = total_nsec / 1000;
        return 0;
}

char *duration_format(char buffer[DURATION_SIZE], uint64_t usec) {
        uint64_t seconds = usec / USEC_PER_SEC;

        if (seconds < 60)
                (void) snprintf(buffer, DURATION_SIZE, "%" PRIu64 "s", seconds);
        else if (seconds < 3600)
                (void) snprintf(buffer, DURATION_SIZE, "%" PRIu64 "m%" PRIu64 "s", seconds / 60,
                                seconds % 60);
        else
                (void) snprintf(buffer, DURATION_SIZE, "%" PRIu64 "h%" PRIu64 "m%" PRIu64 "s",
                                seconds / 3600, seconds / 60 % 60, seconds % 60);
        return buffer;
}
