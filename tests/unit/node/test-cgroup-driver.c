/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/cgroup-driver.h"
#include "tests/test.h"

#include <errno.h>

TEST(systemd_is_the_cgroup_driver_if_possible)
{
        static const struct {
                const char *configured;
                bool has_systemd;
                int version;
                int r;
                bool has_slices;
        } cases[] = {
                { NULL, true, 2, 0, true },
                { NULL, true, 1, 0, false },
                { NULL, false, 2, 0, false },
                { "cgroupfs", true, 2, 0, false },
                { "systemd", true, 2, 0, true },
                { "systemd", true, 1, -EOPNOTSUPP, false },
                { "systemd", false, 2, -EOPNOTSUPP, false },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                bool has_slices = false;

                EXPECT_EQ(choose_cgroup_driver(cases[i].configured, cases[i].has_systemd,
                                               cases[i].version, &has_slices, &error),
                          cases[i].r);
                EXPECT_EQ(has_slices, cases[i].has_slices);
        }
}
