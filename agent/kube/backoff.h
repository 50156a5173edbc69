/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How long to wait before something is tried again: doubling, with jitter, so that the nodes of a
 * cluster that all lost the same server do not come back at once. client-go's numbers: 800 ms, to
 * 30 s, each as long again by chance, and as new after two minutes without a failure. */

#include "common/macros.h"

#include <stdint.h>

typedef struct Backoff {
        unsigned n_failures;
        uint64_t failed_at; /* boot time */
} Backoff;

/* 'pace' is what is waited for the first time, and 'max' at most, both before jitter. */
typedef struct BackoffPace {
        uint64_t first_usec, max_usec;
} BackoffPace;

extern const BackoffPace backoff_pace;      /* 800 ms to 30 s */
extern const BackoffPace backoff_slow_pace; /* 10 s to 5 min: for what was refused */

/* Counts a failure and says how long to wait. 'retry_after_usec' is what the server asked for, 0:
 * nothing. 'chance' is anything from 0 to UINT32_MAX. */
uint64_t backoff_next(Backoff *backoff, const BackoffPace *pace, uint64_t now,
                      uint64_t retry_after_usec, uint32_t chance);

/* As new. */
void backoff_reset(Backoff *backoff);

/* 'usec', and by chance up to 'percent' more. */
uint64_t jitter(uint64_t usec, unsigned percent, uint32_t chance);

/* A number that nobody can foretell, nor needs to. */
uint32_t chance_now(void);
