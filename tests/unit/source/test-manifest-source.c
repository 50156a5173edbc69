/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/source/manifest-source.h"
#include "common/clock.h"
#include "tests/test.h"

#include <stdlib.h>

TEST(only_a_freshly_booted_machine_with_manifests_delays_its_first_request)
{
        const uint64_t minute = 60 * USEC_PER_SEC;

        EXPECT_EQ(manifest_source_first_wait(minute, false, USEC_PER_SEC, 500), 0);
        EXPECT_EQ(manifest_source_first_wait(minute, true, 61 * USEC_PER_SEC, 500), 0);
        EXPECT_EQ(manifest_source_first_wait(minute, true, USEC_PER_SEC, 500), minute / 2);
        EXPECT_EQ(manifest_source_first_wait(600 * minute, true, USEC_PER_SEC, 1000), 5 * minute);
}

/* A thousand machines send about the same number of requests in each second of the interval. */
TEST(machines_that_boot_together_are_spread_over_the_interval)
{
        enum {
                MACHINES = 1000,
                SECONDS = 50
        };
        unsigned asked[SECONDS + 1] = { 0 };

        srandom(1);
        for (unsigned i = 0; i < MACHINES; i++)
                asked[manifest_source_first_wait(SECONDS * USEC_PER_SEC, true, USEC_PER_SEC,
                                                 (uint32_t) random()) /
                      USEC_PER_SEC]++;
        for (unsigned i = 0; i < SECONDS; i++)
                EXPECT(asked[i] >= 5 && asked[i] <= 40);
}
