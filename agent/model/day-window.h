/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Hours of each day: "22:00-05:30", from the first time up to the second, which may be on the next
 * day. Pure; the caller chooses the time zone. */

typedef struct DayWindow {
        unsigned start, end; /* seconds since midnight */
} DayWindow;

/* 0 or -EINVAL; the two times differ. */
int day_window_parse(const char *text, DayWindow *ret);

/* The seconds until the window opens; 0: it is open. */
unsigned day_window_wait(const DayWindow *window, unsigned second_of_day);
