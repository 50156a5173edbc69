/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The progress deadline of a rollout (the annotation mainstay.dev/progress-deadline-seconds): when
 * a new revision counts as good, and when it is rolled back to the last good one. Kubernetes has
 * this for Deployments only. */

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

/* 0: the set is without a deadline. */
uint64_t daemonset_progress_deadline_usec(const DaemonSet *set);

/* The desired revision is good. It must stay available for a while first if a rollback depends on
 * it: a pod that crashes at once is also ready for a moment. '*ret_again_at' is set to the time
 * when that changes by itself, else to 0; likewise below. */
bool daemonset_is_revision_proven(const DaemonSetRollout *rollout, uint64_t *ret_again_at);

/* The desired revision has missed its deadline, and there is a good one to return to. A rollout
 * that an agent finds under way at its start, or after the machine has slept, gets half of the
 * deadline again. */
bool daemonset_should_roll_back(const DaemonSetRollout *rollout, uint64_t *ret_again_at);
