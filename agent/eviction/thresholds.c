/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/thresholds.h"

static bool is_below_threshold(const EvictionThreshold *threshold,
                               const SignalObservation *observed, bool with_reclaim) {
        int64_t quantity = eviction_amount_of(&threshold->value, observed->capacity);

        if (with_reclaim)
                quantity += eviction_amount_of(&threshold->min_reclaim, observed->capacity);
        return observed->is_known && observed->available < quantity;
}

/* evictionSoftGracePeriod: is_due; evictionMinimumReclaim: see is_below_threshold();
 * evictionPressureTransitionPeriod: how long a condition persists. */
void threshold_state_update(ThresholdState *state, const EvictionPolicy *policy,
                            const SignalObservations *observations, uint64_t now) {
        for (size_t i = 0; i < policy->n_thresholds; i++) {
                const EvictionThreshold *threshold = &policy->thresholds[i];
                bool was_met = state->thresholds[i].is_met;
                bool is_met = is_below_threshold(threshold, &observations->of[threshold->signal],
                                                 state->thresholds[i].is_due);

                if (is_met && !was_met)
                        state->thresholds[i].met_since = now;
                state->thresholds[i].is_met = is_met;
                state->thresholds[i].is_due =
                        is_met && now - state->thresholds[i].met_since >= threshold->grace_usec;
                if (is_met)
                        state->condition_seen_at[eviction_signals[threshold->signal].condition] =
                                now;
        }
        state->conditions = 0;
        for (NodeCondition c = 0; c < N_NODE_CONDITIONS; c++)
                if (state->condition_seen_at[c] > 0 &&
                    now - state->condition_seen_at[c] < policy->transition_usec)
                        state->conditions |= NODE_CONDITION_BIT(c);
}

/* Resources with greater numbers are reclaimed first. */
static unsigned threshold_urgency(const EvictionThreshold *threshold) {
        bool is_memory = eviction_signals[threshold->signal].condition == NODE_MEMORY_PRESSURE;

        return (is_memory ? 2U : 0U) + (threshold->grace_usec == 0 ? 1U : 0U);
}

const EvictionThreshold *threshold_state_due(const ThresholdState *state,
                                             const EvictionPolicy *policy) {
        const EvictionThreshold *first = NULL;

        for (size_t i = 0; i < policy->n_thresholds; i++)
                if (state->thresholds[i].is_due &&
                    (!first ||
                     threshold_urgency(&policy->thresholds[i]) > threshold_urgency(first)))
                        first = &policy->thresholds[i];
        return first;
}

bool threshold_state_is_short(const ThresholdState *state, const EvictionPolicy *policy) {
        for (size_t i = 0; i < policy->n_thresholds; i++)
                if (state->thresholds[i].is_met)
                        return true;
        return false;
}

uint64_t threshold_state_next_change(const ThresholdState *state, const EvictionPolicy *policy) {
        uint64_t next = UINT64_MAX;

        for (size_t i = 0; i < policy->n_thresholds; i++)
                if (state->thresholds[i].is_met && !state->thresholds[i].is_due)
                        next = MIN(next, state->thresholds[i].met_since +
                                                 policy->thresholds[i].grace_usec);
        for (NodeCondition c = 0; c < N_NODE_CONDITIONS; c++)
                if (state->conditions & NODE_CONDITION_BIT(c))
                        next = MIN(next, state->condition_seen_at[c] + policy->transition_usec);
        return next;
}
