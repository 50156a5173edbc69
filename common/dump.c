/* SPDX-License-Identifier: Apache-2.0 */
#include "common/dump.h"

#include "common/clock.h"
#include "common/utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <time.h>

enum {
        DEPTH_COLUMNS = 2,
};

bool dump_is_full(FILE *out) {
        return ftell(out) >= DUMP_BYTES_MAX;
}

void dump_section(FILE *out, const char *title) {
        if (!dump_is_full(out))
                (void) fprintf(out, "%s%s:\n", ftell(out) > 0 ? "\n" : "", title);
}

void dump_line(FILE *out, unsigned depth, const char *format, ...) {
        char line[DUMP_LINE_MAX];
        va_list ap;

        if (dump_is_full(out))
                return;
        va_start(ap, format);
        (void) vsnprintf(line, sizeof(line), format, ap);
        va_end(ap);
        /* Programs in containers and servers choose some of the words, and a line must stay a
         * single line. */
        utf8_sanitize(line);
        (void) fprintf(out, "%*s%s\n", (int) depth * DEPTH_COLUMNS, "", line);
}

char *dump_format_duration(char buffer[DUMP_DURATION_SIZE], uint64_t usec) {
        uint64_t seconds = usec / USEC_PER_SEC, minutes = seconds / 60, hours = minutes / 60;

        if (seconds < 60)
                (void) snprintf(buffer, DUMP_DURATION_SIZE, "%" PRIu64 ".%03" PRIu64 "s", seconds,
                                usec % USEC_PER_SEC / USEC_PER_MSEC);
        else if (hours == 0)
                (void) snprintf(buffer, DUMP_DURATION_SIZE, "%" PRIu64 "m%" PRIu64 "s", minutes,
                                seconds % 60);
        else if (hours < 24)
                (void) snprintf(buffer, DUMP_DURATION_SIZE, "%" PRIu64 "h%" PRIu64 "m", hours,
                                minutes % 60);
        else
                (void) snprintf(buffer, DUMP_DURATION_SIZE, "%" PRIu64 "d%" PRIu64 "h", hours / 24,
                                hours % 24);
        return buffer;
}

static char *format_due(char buffer[DUMP_DURATION_SIZE], uint64_t due, uint64_t now) {
        char duration[DUMP_DURATION_SIZE];

        if (due <= now)
                (void) snprintf(buffer, DUMP_DURATION_SIZE, "now");
        else
                (void) snprintf(buffer, DUMP_DURATION_SIZE, "in %.*s", DUMP_DURATION_SIZE - 4,
                                dump_format_duration(duration, due - now));
        return buffer;
}

char *dump_format_due(char buffer[DUMP_DURATION_SIZE], uint64_t boottime_usec) {
        return format_due(buffer, boottime_usec, now_boottime_usec());
}

void dump_timer(FILE *out, unsigned depth, const char *what, sd_event_source *timer) {
        char due[DUMP_DURATION_SIZE];
        struct timespec now;
        clockid_t clock;
        uint64_t usec;
        int enabled;

        if (!timer || sd_event_source_get_enabled(timer, &enabled) < 0 || enabled == SD_EVENT_OFF ||
            sd_event_source_get_time(timer, &usec) < 0 ||
            sd_event_source_get_time_clock(timer, &clock) < 0 || clock_gettime(clock, &now) < 0)
                return;
        if (usec == UINT64_MAX)
                return;
        dump_line(out, depth, "timer: %s %s", what,
                  format_due(due, usec,
                             (uint64_t) now.tv_sec * USEC_PER_SEC +
                                     (uint64_t) now.tv_nsec / (USEC_PER_SEC / USEC_PER_MSEC)));
}
