/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How soon a daemon's pod that ended by itself (evicted, or failed as a whole) is made anew: the
 * controller's failedPodsBackoff, 1 s doubling to 15 minutes. It begins anew with another revision,
 * and after twice the longest wait in which nothing ended. */

#include "agent/daemonset/rules/rules.h"

typedef struct FailedPodsBackoff {
        char hash[REVISION_HASH_SIZE]; /* the revision that it counts for */
        uint64_t delay_usec;           /* 0: nothing has ended yet */
        uint64_t since;                /* when one was made anew last */
} FailedPodsBackoff;

/* A pod of the set has ended. True where it may be made anew now, which is counted; else
 * 'ret_again_at' is when it may. 'now' is of any clock that does not jump. */
bool failed_pods_backoff_is_over(FailedPodsBackoff *back_off, const char *hash, uint64_t now,
                                 uint64_t *ret_again_at);
