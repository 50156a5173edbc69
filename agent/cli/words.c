/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/words.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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

void print_line(FILE *out, const char *format, ...) {
        cleanup_free char *line = NULL;
        va_list ap;

        va_start(ap, format);
        line = format_message(format, ap);
        va_end(ap);
        if (!line)
                return;
        write_quoted(line, out);
        fputc('\n', out);
}
