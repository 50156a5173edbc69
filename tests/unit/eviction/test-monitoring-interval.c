/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/monitoring-interval.h"
#include "tests/test.h"

#define SEC UINT64_C(1000000)
#define GIB ((int64_t) 1 << 30)

static const EvictionPolicy memory_policy = {
        .thresholds = { { .signal = EVICTION_MEMORY, .value = { .quantity = GIB } } },
        .n_thresholds = 1,
};

static SignalObservations with_memory(int64_t available) {
        return (SignalObservations){ .of = { [EVICTION_MEMORY] = { true, available, 64 * GIB } } };
}

static uint64_t next(int64_t before, int64_t now, bool has_memory_watch, uint64_t previous) {
        SignalObservations earlier = with_memory(before), later = with_memory(now);

        return next_monitoring_interval(&memory_policy, &earlier, &later, has_memory_watch,
                                        previous);
}

TEST(the_interval_grows_with_the_distance_to_the_threshold)
{
        uint64_t near = next(2 * GIB, 2 * GIB, true, 0), far = next(33 * GIB, 33 * GIB, true, 0);

        EXPECT(near >= SEC);
        EXPECT(near < 10 * SEC);
        EXPECT(far > 100 * SEC);
        EXPECT(far <= 300 * SEC);
}

TEST(memory_without_notifications_is_observed_more_often)
{ EXPECT(next(33 * GIB, 33 * GIB, false, 0) < next(33 * GIB, 33 * GIB, true, 0)); }

TEST(interval_near_a_threshold_grows_to_the_kubelets_while_usage_is_stable)
{
        int64_t there = GIB + GIB / 8;
        uint64_t interval = next(there, there, true, 0);

        EXPECT(interval < 5 * SEC);
        for (int i = 0; i < 8; i++)
                interval = next(there, there, true, interval);
        EXPECT_EQ(interval, 10 * SEC);
        EXPECT(next(there, there - GIB / 16, true, interval) < 5 * SEC);
}

TEST(unknown_signals_are_observed_rarely)
{
        SignalObservations nothing = { 0 };

        EXPECT_EQ(next_monitoring_interval(&memory_policy, &nothing, &nothing, true, 0), 300 * SEC);
}

TEST(a_missing_pods_cgroup_is_observed_again_soon)
{
        const EvictionPolicy policy = { .thresholds = { { .signal = EVICTION_ALLOCATABLE_MEMORY } },
                                        .n_thresholds = 1 };
        SignalObservations nothing = { 0 };

        EXPECT_EQ(next_monitoring_interval(&policy, &nothing, &nothing, true, 0), 10 * SEC);
}
