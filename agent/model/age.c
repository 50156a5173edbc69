/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/age.h"

#include "common/clock.h"
#include "common/macros.h"

#include <stdio.h>

/* kubectl's ranges. A row applies to ages below 'limit' seconds; 'fine' is the unit shown after the
 * coarse one, or 0 if only the coarse unit is shown. */
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
