/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The progress deadline of a DaemonSet's rollout: whether a new revision counts as good, and
 * whether it is rolled back to the last good one, at the times of rollout-deadline.h. */

#include "agent/daemonset/rules/history.h"
#include "agent/daemonset/rules/rolling-update.h"

typedef struct DaemonSetRollout {
        const DaemonSet *set;
        const DaemonSetHistory *history;
        DaemonSetVerdict verdict;
        bool is_available;    /* the desired revision is */
        uint64_t ready_since; /* its pod is */
        uint64_t awake_since; /* agent and machine; by the clock of 'now' and of the history */
        uint64_t now;
} DaemonSetRollout;

/* The desired revision is good: it has been available for long enough. '*ret_again_at' is set to
 * the time when that changes by itself, else to 0; likewise below. */
bool daemonset_is_revision_proven(const DaemonSetRollout *rollout, uint64_t *ret_again_at);

/* The desired revision has missed its deadline, and there is a good one to return to. */
bool daemonset_should_roll_back(const DaemonSetRollout *rollout, uint64_t *ret_again_at);
