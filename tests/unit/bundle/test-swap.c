/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/swap.h"
#include "tests/test.h"

#define GIB (INT64_C(1) << 30)

static int64_t swap_of(int64_t request, int64_t limit, int64_t priority, bool limited,
                       int cgroup_version) {
        const BundleConfig config = { .memory_capacity = 8 * GIB,
                                      .swap_capacity = 4 * GIB,
                                      .has_limited_swap = limited };
        Container container = { .name = (char[]){ "c" } };
        PodSpec spec = { .containers = { &container, 1 }, .priority = { true, priority } };

        container.resources.requests.memory =
                (Quantity){ (char[]){ "x" }, request, request * 1000 };
        container.resources.limits.memory = (Quantity){ (char[]){ "x" }, limit, limit * 1000 };
        return container_swap_bytes(&config, &spec, &container, cgroup_version);
}

TEST(only_burstable_containers_get_a_share_of_swap)
{
        static const struct {
                int64_t request, limit, priority;
                bool limited;
                int version;
                int64_t bytes;
        } cases[] = {
                { 2 * GIB, 3 * GIB, 0, true, 2, GIB },
                { 2 * GIB, 0, 0, true, 2, GIB },
                { 16 * GIB, 0, 0, true, 2, 4 * GIB },
                { 1000, 0, 0, true, 2, 500 },
                { 2 * GIB, 3 * GIB, 0, false, 2, 0 },         /* memorySwap is not configured */
                { 2 * GIB, 3 * GIB, 0, true, 1, 0 },          /* cgroup v1: not supported */
                { 2 * GIB, 2 * GIB, 0, true, 2, 0 },          /* its request equals its limit */
                { 0, 2 * GIB, 0, true, 2, 0 },                /* no memory request */
                { 2 * GIB, 3 * GIB, 2000000000, true, 2, 0 }, /* critical to the system */
                { 0, 0, 0, true, 2, 0 },                      /* BestEffort */
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_EQ(swap_of(cases[i].request, cases[i].limit, cases[i].priority,
                                  cases[i].limited, cases[i].version),
                          cases[i].bytes);
}
