/* SPDX-License-Identifier: Apache-2.0 */

/* The times of a rollout with a deadline; see the header. */

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

uint64_t rollout_good_at(uint64_t deadline, uint64_t ready_since) {
        return ready_since + MIN(deadline / 2, READY_LONG_ENOUGH_USEC);
}

uint64_t rollout_failed_at(uint64_t deadline, uint64_t since, uint64_t awake_since) {
        return MAX(since + deadline, awake_since + deadline / 2);
}
