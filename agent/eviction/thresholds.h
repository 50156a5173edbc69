/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Eviction thresholds (evictionHard, evictionSoft): determines which are met, and for how long, and
 * the resulting conditions of the node. Pure. */

#include "agent/model/eviction.h"

/* The value of one signal; unknown if it cannot be read. */
typedef struct SignalObservation {
        bool is_known;
        int64_t available;
        int64_t capacity;
} SignalObservation;

typedef struct SignalObservations {
        SignalObservation of[N_EVICTION_SIGNALS];
        bool is_read_only; /* the file system of the state directory */
} SignalObservations;

typedef struct ThresholdState {
        struct {
                bool is_met;
                bool is_due;        /* its grace period is also over */
                uint64_t met_since; /* boot time */
        } thresholds[EVICTION_THRESHOLDS_MAX];
        uint64_t condition_seen_at[N_NODE_CONDITIONS]; /* boot time; 0: never */
        unsigned conditions;                           /* the set of true conditions */
} ThresholdState;

/* Adds the observations of 'now' (boot time). A threshold that was due stays met until its minimum
 * reclaim has also been reached; a condition stays true until it has not been observed for the
 * transition period. */
void threshold_state_update(ThresholdState *state, const EvictionPolicy *policy,
                            const SignalObservations *observations, uint64_t now);

/* The threshold for which to reclaim resources: memory before all others, and hard thresholds
 * before soft ones. NULL: none. */
const EvictionThreshold *threshold_state_due(const ThresholdState *state,
                                             const EvictionPolicy *policy);

/* Whether any threshold is met, due or not. */
bool threshold_state_is_short(const ThresholdState *state, const EvictionPolicy *policy);

/* The time at which the state changes without a new observation: the end of a grace period or of a
 * condition. UINT64_MAX: never. */
uint64_t threshold_state_next_change(const ThresholdState *state, const EvictionPolicy *policy);
