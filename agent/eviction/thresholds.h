/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which thresholds are crossed, for how long, and what the node is called therefore. Pure. */

#include "agent/model/eviction.h"

/* Of one signal; unknown where the kernel would not say. */
typedef struct SignalObservation {
        bool is_known;
        int64_t available;
        int64_t capacity;
} SignalObservation;

typedef struct SignalObservations {
        SignalObservation of[N_EVICTION_SIGNALS];
} SignalObservations;

typedef struct ThresholdState {
        struct {
                bool is_met;
                bool is_due;        /* and its grace is over */
                uint64_t met_since; /* boot time */
        } thresholds[EVICTION_THRESHOLDS_MAX];
        uint64_t condition_seen_at[N_NODE_CONDITIONS]; /* boot time; 0: never */
        unsigned conditions;                           /* the set of those that hold */
} ThresholdState;

/* Takes in what was observed at 'now' (boot time). A threshold that was due stays met until its
 * minimum is reclaimed as well; a condition holds until it was not seen for the policy's time. */
void threshold_state_update(ThresholdState *state, const EvictionPolicy *policy,
                            const SignalObservations *observations, uint64_t now);

/* The threshold for which something must be done: memory before all others, and of one signal the
 * hard one before the soft. NULL: none. */
const EvictionThreshold *threshold_state_due(const ThresholdState *state,
                                             const EvictionPolicy *policy);

/* Whether any threshold is met, due or not. */
bool threshold_state_is_short(const ThresholdState *state, const EvictionPolicy *policy);

/* When something becomes another by time alone, be it that nothing else changes: a grace is over,
 * or a condition. UINT64_MAX: never. */
uint64_t threshold_state_next_change(const ThresholdState *state, const EvictionPolicy *policy);
