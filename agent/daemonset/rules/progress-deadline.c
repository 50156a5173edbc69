/* SPDX-License-Identifier: Apache-2.0 */

/* The progress deadline; see the header. */

#include "agent/daemonset/rules/progress-deadline.h"

#include "agent/model/rollout-deadline.h"

bool daemonset_is_revision_proven(const DaemonSetRollout *rollout, uint64_t *ret_again_at) {
        uint64_t until = rollout_good_at(daemonset_progress_deadline_usec(rollout->set),
                                         rollout->ready_since);

        *ret_again_at = 0;
        if (!rollout->is_available)
                return false;
        if (rollout->now >= until)
                return true;
        *ret_again_at = until;
        return false;
}

bool daemonset_should_roll_back(const DaemonSetRollout *rollout, uint64_t *ret_again_at) {
        const DaemonSetHistory *history = rollout->history;
        uint64_t deadline = daemonset_progress_deadline_usec(rollout->set);
        uint64_t end = rollout_failed_at(deadline, history->rollout_since, rollout->awake_since);
        const char *desired = daemonset_history_desired(history);

        *ret_again_at = 0;
        if (deadline == 0 || history->rollout_since == 0 || !history->last_available[0] ||
            rollout->verdict != DAEMONSET_SHOULD_RUN || !daemonset_history_find(history, desired) ||
            streq(history->last_available, desired))
                return false;
        if (rollout->now >= end)
                return true;
        *ret_again_at = end;
        return false;
}
