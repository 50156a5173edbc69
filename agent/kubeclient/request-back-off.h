/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The back-off of requests to the API server, on common/back-off.h, with client-go's numbers: 800
 * ms, doubling to 30 s, plus up to as much again as jitter, so that the nodes of a cluster that
 * have all lost the same server do not return at the same moment. It is reset after two minutes
 * without a failure. A longer Retry-After of the server takes precedence. */

#include "common/back-off.h"

#include <stdint.h>

typedef struct KubeBackOff {
        unsigned n_failures; /* across all limits */
        uint64_t failed_at;  /* boot time */
} KubeBackOff;

extern const BackOffLimits kube_back_off_default; /* 800 ms to 30 s */
extern const BackOffLimits kube_back_off_slow;    /* 10 s to 5 min: after a refusal */

/* The limits of the back-off after an HTTP status (0: no response); and the end of a message about
 * it, "retrying within a minute". */
const BackOffLimits *kube_back_off_limits_for_status(unsigned status);
const char *kube_back_off_retry_hint(unsigned status);

/* Counts a failure and returns how long to wait. 'retry_after_usec' is the server's Retry-After, 0:
 * none. 'chance' is a random number. */
uint64_t kube_back_off_next(KubeBackOff *back_off, const BackOffLimits *limits, uint64_t now,
                            uint64_t retry_after_usec, uint32_t chance);

/* To be called after a success. */
void kube_back_off_reset(KubeBackOff *back_off);
