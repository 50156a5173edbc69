/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/day-window.h"

#include <ctype.h>
#include <errno.h>

enum {
        DAY_SECONDS = 24 * 60 * 60
};

/* "HH:MM"; -1: invalid. */
static int parse_time_of_day(const char *text) {
        int hours, minutes;

        if (!isdigit((unsigned char) text[0]) || !isdigit((unsigned char) text[1]) ||
            text[2] != ':' || !isdigit((unsigned char) text[3]) ||
            !isdigit((unsigned char) text[4]))
                return -1;
        hours = (text[0] - '0') * 10 + text[1] - '0';
        minutes = (text[3] - '0') * 10 + text[4] - '0';
        return hours < 24 && minutes < 60 ? (hours * 60 + minutes) * 60 : -1;
}

int day_window_parse(const char *text, DayWindow *ret) {
        int start = parse_time_of_day(text), end;

        if (start < 0 || text[5] != '-')
                return -EINVAL;
        end = parse_time_of_day(text + 6);
        if (end < 0 || text[11] || start == end)
                return -EINVAL;
        *ret = (DayWindow){ (unsigned) start, (unsigned) end };
        return 0;
}

unsigned day_window_wait(const DayWindow *window, unsigned second_of_day) {
        unsigned since = (second_of_day + DAY_SECONDS - window->start) % DAY_SECONDS;
        unsigned length = (window->end + DAY_SECONDS - window->start) % DAY_SECONDS;

        return since < length ? 0 : DAY_SECONDS - since;
}
