/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How long to wait before something is tried again: doubling, with jitter, so that the nodes of a
 * cluster that all lost the same server do not come back at once. client-go's numbers: 800 ms, to
 * 30 s, each as long again by chance, and as new after two minutes without a failure. */

#include "common/macros.h"

#include <stdint.h>

typedef struct KubeBackoff {
        unsigned n_failures;
        uint64_t failed_at; /* boot time */
} KubeBackoff;

/* 'pace' is what is waited for the first time, and 'max' at most, both before jitter. */
typedef struct KubeBackoffLimits {
        uint64_t first_usec, max_usec;
} KubeBackoffLimits;

extern const KubeBackoffLimits kube_backoff_default; /* 800 ms to 30 s */
extern const KubeBackoffLimits kube_backoff_slow;    /* 10 s to 5 min: for what was refused */

/* Counts a failure and says how long to wait. 'retry_after_usec' is what the server asked for, 0:
 * nothing. 'chance' is anything from 0 to UINT32_MAX. */
uint64_t kube_backoff_next(KubeBackoff *backoff, const KubeBackoffLimits *limits, uint64_t now,
                           uint64_t retry_after_usec, uint32_t chance);

/* As new. */
void kube_backoff_reset(KubeBackoff *backoff);

/* 'usec', and by chance up to 'percent' more. */
uint64_t kube_jitter(uint64_t usec, unsigned percent, uint32_t chance);

/* A number that nobody can foretell, nor needs to. */
uint32_t kube_random_u32(void);
