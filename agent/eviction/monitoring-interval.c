/* SPDX-License-Identifier: Apache-2.0 */
/* A wake-up costs more than the observation itself, so observations should be rare. Each resource
 * has a maximum rate at which it could be exhausted, so the distance to its threshold corresponds
 * to a time. Half of the threshold's quantity is added to the distance, because some of the
 * resource is still left after a late observation. */

#include "agent/eviction/monitoring-interval.h"

#include "common/clock.h"

#define MIB_64 ((int64_t) MIB)

#define SETTLED_USEC (10 * USEC_PER_SEC)  /* like the kubelet's; used near a threshold */
#define LONGEST_USEC (300 * USEC_PER_SEC) /* the rates are guesses */

/* Rates per second. For memory without notifications there is a factor, see below. */
static const int64_t consumption_rates[N_NODE_CONDITIONS] = {
        [NODE_MEMORY_PRESSURE] = 256 * MIB_64,
        [NODE_DISK_PRESSURE] = 256 * MIB_64,
        [NODE_PID_PRESSURE] = 1000,
};

enum {
        UNWATCHED_MEMORY_FACTOR = 8,
        INODES_A_SECOND = 20000,
        LATE_SECONDS = 3, /* maximum after a threshold was met */
        STILL_PART = 16,  /* a change below this fraction of the distance is ignored */
};

static int64_t consumption_rate(EvictionSignal signal, bool has_memory_watch) {
        NodeCondition condition = eviction_signals[signal].condition;

        if (condition == NODE_DISK_PRESSURE && eviction_signals[signal].is_counted)
                return INODES_A_SECOND;
        if (condition == NODE_MEMORY_PRESSURE && !has_memory_watch)
                return consumption_rates[condition] * UNWATCHED_MEMORY_FACTOR;
        return consumption_rates[condition];
}

static uint64_t time_to_threshold(const EvictionThreshold *threshold,
                                  const SignalObservation *observed, bool has_memory_watch) {
        int64_t quantity = eviction_amount_of(&threshold->value, observed->capacity);
        int64_t rate = consumption_rate(threshold->signal, has_memory_watch);
        int64_t distance =
                MAX(observed->available - quantity, 0) + MIN(quantity / 2, rate * LATE_SECONDS);
        uint64_t seconds = (uint64_t) (distance / rate);

        return MAX(MIN(seconds * USEC_PER_SEC, LONGEST_USEC), USEC_PER_SEC);
}

static bool is_signal_unchanged(const EvictionThreshold *threshold, const SignalObservation *before,
                                const SignalObservation *now) {
        int64_t distance = now->available - eviction_amount_of(&threshold->value, now->capacity);
        int64_t moved = before->available - now->available;

        return before->is_known && distance > 0 && moved < distance / STILL_PART;
}

uint64_t next_monitoring_interval(const EvictionPolicy *policy, const SignalObservations *before,
                                  const SignalObservations *now, bool has_memory_watch,
                                  uint64_t previous) {
        uint64_t settled = MIN(2 * previous, SETTLED_USEC), next = LONGEST_USEC;

        for (size_t i = 0; i < policy->n_thresholds; i++) {
                const EvictionThreshold *threshold = &policy->thresholds[i];
                const SignalObservation *observed = &now->of[threshold->signal];
                uint64_t time;

                if (!observed->is_known) {
                        /* The control group of all pods is created with the first pod, after the
                         * first measurement. */
                        if (threshold->signal == EVICTION_ALLOCATABLE_MEMORY)
                                next = MIN(next, SETTLED_USEC);
                        continue;
                }
                time = time_to_threshold(threshold, observed, has_memory_watch);
                if (previous > 0 &&
                    is_signal_unchanged(threshold, &before->of[threshold->signal], observed))
                        time = MAX(time, settled);
                next = MIN(next, time);
        }
        return next;
}
