/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who of the pods goes when the node is short of something, and who may come back. What is under
 * way of it; the verbs are the supervisor's. */

#include "agent/pressure/sentence.h"
#include "common/child.h"

typedef struct Evictions {
        Shortage shortage;         /* for which … */
        Child *measuring;          /* … what the pods have written is being measured … */
        struct Measured *measured; /* … of these */
        size_t n_measured;
        bool has_failed;      /* nobody was found that way */
        char *going;          /* the UID of the pod that was evicted last; it is waited for … */
        uint64_t going_until; /* … up to this boot time */
        uint64_t counts[N_EVICTION_SIGNALS];
} Evictions;

void evictions_done(Evictions *evictions);
