/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The arithmetic of every back-off, which is the time to wait before a failed operation is retried.
 * The delay doubles up to a maximum; jitter keeps many nodes from retrying at once. All functions
 * except back_off_random() are pure. The callers decide when a back-off is reset: CrashLoopBackOff
 * (agent/pods/machine/restart-policy.h), ImagePullBackOff (container-machine.c), requests to the
 * API server (agent/kubeclient/request-back-off.h). */

#include <stdint.h>

typedef struct BackOffLimits {
        uint64_t initial_usec;
        uint64_t max_usec;
} BackOffLimits;

/* The delay after the next failure: the initial one if 'delay_usec' is 0, otherwise twice
 * 'delay_usec', at most the maximum. */
uint64_t back_off_next_delay(uint64_t delay_usec, const BackOffLimits *limits);

/* 'usec' plus a random amount of up to 'percent'. 'random' is any number. */
uint64_t back_off_add_jitter(uint64_t usec, unsigned percent, uint32_t random);

/* A random number for jitter, not for secrets. Never blocks. */
uint32_t back_off_random(void);
