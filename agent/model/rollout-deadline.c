/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/model/rollout-deadline.h"

#include "agent/model/own-values.h"
#include "common/clock.h"

#include <stdlib.h>

#define READY_LONG_ENOUGH_USEC (10 * USEC_PER_SEC)

static uint64_t parse_deadline_usec(const char *text) {
        return text ? strtoull(text, NULL, 10) * USEC_PER_SEC : 0;
}

uint64_t pod_progress_deadline_usec(const Pod *pod) {
        return parse_deadline_usec(own_pod_value(pod, OWN_KEY_PROGRESS_DEADLINE));
}

uint64_t daemonset_progress_deadline_usec(const DaemonSet *set) {
        return parse_deadline_usec(own_daemonset_value(set, OWN_KEY_PROGRESS_DEADLINE));
}

/* The pod must stay ready for a while, because even a pod that soon crashes is ready for a moment.
 */
static uint64_t rollout_good_at(const RolloutState *rollout) {
        return rollout->is_ready ? rollout->ready_since +
                                           MIN(rollout->deadline_usec / 2, READY_LONG_ENOUGH_USEC)
                                 : UINT64_MAX;
}

/* A rollout that is in progress when the agent starts, or when the machine resumes, gets half of
 * the deadline again. */
static uint64_t rollout_failed_at(const RolloutState *rollout) {
        if (!rollout->can_go_back || (rollout->is_ready && !rollout->must_be_good_in_time))
                return UINT64_MAX;
        return MAX(rollout->since + rollout->deadline_usec,
                   rollout->awake_since + rollout->deadline_usec / 2);
}

RolloutDecision rollout_decide(const RolloutState *rollout, uint64_t *ret_again_at) {
        uint64_t good_at = rollout_good_at(rollout), failed_at = rollout_failed_at(rollout);
        uint64_t again_at = MIN(good_at, failed_at);

        *ret_again_at = 0;
        if (rollout->is_settled)
                return ROLLOUT_CONTINUES;
        if (rollout->now >= good_at)
                return ROLLOUT_IS_GOOD;
        if (rollout->now >= failed_at)
                return ROLLOUT_GOES_BACK;
        *ret_again_at = again_at == UINT64_MAX ? 0 : again_at;
        return ROLLOUT_CONTINUES;
}
