/* SPDX-License-Identifier: Apache-2.0 */

/* The times of a rollout with a deadline; see the header. */

#include "agent/model/rollout-deadline.h"

#include "common/clock.h"

#include <stdlib.h>

#define READY_LONG_ENOUGH_USEC (10 * USEC_PER_SEC)

uint64_t object_progress_deadline_usec(const ObjectMeta *metadata) {
        const char *text = string_map_get(&metadata->annotations, PROGRESS_DEADLINE_ANNOTATION);

        return text ? strtoull(text, NULL, 10) * USEC_PER_SEC : 0;
}

uint64_t rollout_good_at(uint64_t deadline, uint64_t ready_since) {
        return ready_since + MIN(deadline / 2, READY_LONG_ENOUGH_USEC);
}

uint64_t rollout_failed_at(uint64_t deadline, uint64_t since, uint64_t awake_since) {
        return MAX(since + deadline, awake_since + deadline / 2);
}
