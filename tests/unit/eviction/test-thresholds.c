/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/thresholds.h"
#include "tests/test.h"

#define SEC UINT64_C(1000000)

static EvictionPolicy policy_of(size_t n, const EvictionThreshold *thresholds) {
        EvictionPolicy policy = { .n_thresholds = n, .transition_usec = 300 * SEC };

        for (size_t i = 0; i < n; i++)
                policy.thresholds[i] = thresholds[i];
        return policy;
}

static void observe_signal(ThresholdState *state, const EvictionPolicy *policy, int64_t available,
                           uint64_t now) {
        SignalObservations observed = { .of = { [EVICTION_MEMORY] = { true, available, 1000 },
                                                [EVICTION_NODE_FS] = { true, available, 1000 } } };

        threshold_state_update(state, policy, &observed, now);
}

static const EvictionThreshold hard = { .signal = EVICTION_MEMORY, .value = { .quantity = 100 } };
static const EvictionThreshold soft = { .signal = EVICTION_MEMORY,
                                        .value = { .fraction = 0.2 },
                                        .grace_usec = 30 * SEC };

TEST(a_threshold_is_met_when_the_available_amount_is_below_its_quantity)
{
        EvictionPolicy policy = policy_of(1, &hard);
        ThresholdState state = { 0 };

        observe_signal(&state, &policy, 100, 10 * SEC);
        EXPECT(!threshold_state_is_short(&state, &policy));
        EXPECT_EQ(state.conditions, 0);
        observe_signal(&state, &policy, 99, 11 * SEC);
        EXPECT(threshold_state_is_short(&state, &policy));
        EXPECT(threshold_state_due(&state, &policy) == &policy.thresholds[0]);
        EXPECT_EQ(state.conditions, NODE_CONDITION_BIT(NODE_MEMORY_PRESSURE));
}

TEST(an_unknown_signal_meets_no_threshold)
{
        EvictionPolicy policy = policy_of(1, &hard);
        SignalObservations observed = { 0 };
        ThresholdState state = { 0 };

        threshold_state_update(&state, &policy, &observed, SEC);
        EXPECT(!threshold_state_is_short(&state, &policy));
}

TEST(a_soft_threshold_sets_the_condition_at_once_and_is_due_after_its_grace_period)
{
        EvictionPolicy policy = policy_of(1, &soft);
        ThresholdState state = { 0 };

        observe_signal(&state, &policy, 199, 10 * SEC);
        EXPECT_EQ(state.conditions, NODE_CONDITION_BIT(NODE_MEMORY_PRESSURE));
        EXPECT(!threshold_state_due(&state, &policy));
        EXPECT_EQ(threshold_state_next_change(&state, &policy), 40 * SEC);
        observe_signal(&state, &policy, 199, 39 * SEC);
        EXPECT(!threshold_state_due(&state, &policy));
        observe_signal(&state, &policy, 199, 40 * SEC);
        EXPECT(threshold_state_due(&state, &policy) != NULL);
}

TEST(a_grace_period_starts_over_when_the_threshold_was_not_met_in_between)
{
        EvictionPolicy policy = policy_of(1, &soft);
        ThresholdState state = { 0 };

        observe_signal(&state, &policy, 199, 10 * SEC);
        observe_signal(&state, &policy, 200, 20 * SEC);
        observe_signal(&state, &policy, 199, 30 * SEC);
        observe_signal(&state, &policy, 199, 45 * SEC);
        EXPECT(!threshold_state_due(&state, &policy));
}

TEST(a_due_threshold_stays_met_until_its_minimum_reclaim)
{
        EvictionThreshold threshold = hard;
        ThresholdState state = { 0 };
        EvictionPolicy policy;

        threshold.min_reclaim.quantity = 50;
        policy = policy_of(1, &threshold);
        observe_signal(&state, &policy, 149, 1 * SEC);
        EXPECT(!threshold_state_is_short(&state, &policy));
        observe_signal(&state, &policy, 99, 2 * SEC);
        observe_signal(&state, &policy, 149, 3 * SEC);
        EXPECT(threshold_state_due(&state, &policy) != NULL);
        observe_signal(&state, &policy, 150, 4 * SEC);
        EXPECT(!threshold_state_is_short(&state, &policy));
}

TEST(a_condition_lasts_for_the_transition_period)
{
        EvictionPolicy policy = policy_of(1, &hard);
        ThresholdState state = { 0 };

        observe_signal(&state, &policy, 50, 10 * SEC);
        observe_signal(&state, &policy, 50, 20 * SEC);
        observe_signal(&state, &policy, 500, 30 * SEC);
        EXPECT_EQ(state.conditions, NODE_CONDITION_BIT(NODE_MEMORY_PRESSURE));
        EXPECT_EQ(threshold_state_next_change(&state, &policy), 320 * SEC);
        observe_signal(&state, &policy, 500, 319 * SEC);
        EXPECT(state.conditions != 0);
        observe_signal(&state, &policy, 500, 320 * SEC);
        EXPECT_EQ(state.conditions, 0);
        EXPECT_EQ(threshold_state_next_change(&state, &policy), UINT64_MAX);
}

TEST(memory_is_reclaimed_before_disks_and_hard_thresholds_before_soft_ones)
{
        const EvictionThreshold disk = { .signal = EVICTION_NODE_FS, .value = { .quantity = 100 } };
        EvictionThreshold thresholds[] = { disk, soft, hard };
        EvictionPolicy policy = policy_of(N_ELEMENTS(thresholds), thresholds);
        ThresholdState state = { 0 };

        observe_signal(&state, &policy, 50, 10 * SEC);
        observe_signal(&state, &policy, 50, 60 * SEC);
        EXPECT(threshold_state_due(&state, &policy) == &policy.thresholds[2]);
        observe_signal(&state, &policy, 150, 61 * SEC);
        EXPECT(threshold_state_due(&state, &policy) == &policy.thresholds[1]);
        EXPECT_EQ(state.conditions, NODE_CONDITION_BIT(NODE_MEMORY_PRESSURE) |
                                            NODE_CONDITION_BIT(NODE_DISK_PRESSURE));
}
