/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The back-off of failed daemon pods (evicted, or failed as a whole): the controller's
 * failedPodsBackoff, which starts at 1 s and doubles up to 15 minutes. It is reset by a new
 * revision, and after twice the longest delay without a failure. */

#include "agent/daemonset/rules/rules.h"

typedef struct FailedPodsBackOff {
        char hash[REVISION_HASH_SIZE]; /* hash of the revision */
        uint64_t delay_usec;           /* 0: no pod has failed yet */
        uint64_t since;                /* when a pod was last replaced */
} FailedPodsBackOff;

/* A pod of the set has failed or succeeded. True if it may be replaced now, which counts as a
 * replacement; otherwise '*ret_again_at' is the time from which it may be replaced. 'now' may be
 * from any clock that does not jump. */
bool failed_pods_back_off_is_over(FailedPodsBackOff *back_off, const char *hash, uint64_t now,
                                  uint64_t *ret_again_at);
