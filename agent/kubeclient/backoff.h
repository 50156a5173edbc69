/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Back-off with jitter for requests to the API server, so that the nodes of a cluster that all lost
 * the same server do not return at the same moment. The numbers are client-go's: 800 ms doubling to
 * 30 s, plus up to as much again by chance; reset after two minutes without a failure. */

#include "common/macros.h"

#include <stdint.h>

typedef struct KubeBackoff {
        unsigned n_failures;
        uint64_t failed_at; /* boot time */
} KubeBackoff;

/* The first wait and the longest, both before jitter. */
typedef struct KubeBackoffLimits {
        uint64_t first_usec, max_usec;
} KubeBackoffLimits;

extern const KubeBackoffLimits kube_backoff_default; /* 800 ms to 30 s */
extern const KubeBackoffLimits kube_backoff_slow;    /* 10 s to 5 min: after a refusal */

/* The back-off after an HTTP status, 0: no response; and when it ends, for messages: "retrying
 * within a minute". */
const KubeBackoffLimits *kube_backoff_limits_for_status(unsigned status);
const char *kube_backoff_retry_hint(unsigned status);

/* Counts a failure and returns how long to wait. 'retry_after_usec' is the server's Retry-After, 0:
 * none. 'chance' is a random number. */
uint64_t kube_backoff_next(KubeBackoff *backoff, const KubeBackoffLimits *limits, uint64_t now,
                           uint64_t retry_after_usec, uint32_t chance);

/* After a success. */
void kube_backoff_reset(KubeBackoff *backoff);

/* 'usec' plus up to 'percent' of it, by 'chance'. */
uint64_t kube_jitter(uint64_t usec, unsigned percent, uint32_t chance);

/* A random number, not for cryptography. */
uint32_t kube_random_u32(void);
