/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/day-window.h"

#include "tests/test.h"

#include <errno.h>

#define AT(hour, minute) (((hour) *60 + (minute)) * 60)

TEST(a_window_is_open_between_its_times)
{
        static const struct {
                const char *text;
                unsigned at, wait;
        } cases[] = {
                { "01:00-05:30", AT(1, 0), 0 },           { "01:00-05:30", AT(5, 29), 0 },
                { "01:00-05:30", AT(5, 30), AT(19, 30) }, { "01:00-05:30", AT(0, 59), 60 },
                { "01:00-05:30", AT(0, 0), AT(1, 0) },    { "22:00-02:00", AT(22, 0), 0 },
                { "22:00-02:00", AT(23, 59) + 59, 0 },    { "22:00-02:00", AT(1, 59), 0 },
                { "22:00-02:00", AT(2, 0), AT(20, 0) },   { "22:00-02:00", AT(21, 59) + 59, 1 },
                { "00:00-23:59", AT(23, 59), 60 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                DayWindow window;

                REQUIRE(day_window_parse(cases[i].text, &window) == 0);
                EXPECT_EQ(day_window_wait(&window, cases[i].at), cases[i].wait);
        }
}

TEST(invalid_window_is_refused)
{
        static const char *const texts[] = { "",
                                             "1:00-5:00",
                                             "01:00",
                                             "01:00-",
                                             "24:00-05:00",
                                             "01:60-05:00",
                                             "01:00-05:00x",
                                             "01:00 05:00",
                                             "01:00-01:00",
                                             "-1:00-05:00" };

        for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
                DayWindow window;

                EXPECT_EQ(day_window_parse(texts[i], &window), -EINVAL);
        }
}
