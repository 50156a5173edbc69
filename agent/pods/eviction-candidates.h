/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who of the pods goes when the node is short of something, and who may come back. What is under
 * way of it; the verbs are the supervisor's. */

#include "agent/eviction/eviction-message.h"
#include "common/child.h"

typedef struct PodEvictions {
        ResourceShortage shortage; /* for which … */
        Child *measure_child;      /* … what the pods have written is being measured … */
        struct MeasuredPod *measured_pods; /* … of these */
        size_t n_measured_pods;
        bool has_failed;    /* nobody was found that way */
        char *evicting_uid; /* the UID of the pod that was evicted last; it is waited for … */
        uint64_t evicting_until; /* … up to this boot time */
        uint64_t counts[N_EVICTION_SIGNALS];
} PodEvictions;

void pod_evictions_done(PodEvictions *evictions);
