/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How many containers are being created at once. An OCI runtime is a heavy program; five hundred
 * pods that appear in one moment must not mean five hundred of it. First come, first served. */

#include "common/macros.h"

typedef struct StartSlot StartSlot;

/* It is this one's turn; called from start_limiter_acquire() or from another's
 * start_limiter_release(). */
typedef void (*start_slot_acquired_t)(void *userdata);

/* Embedded in who asks; zeroed at first. */
struct StartSlot {
        start_slot_acquired_t on_acquired;
        void *userdata;
        StartSlot *next;
        bool is_waiting;
        bool is_held;
};

typedef struct StartLimiter {
        unsigned max;
        unsigned held;
        bool is_granting;
        StartSlot *first;
        StartSlot **end;
} StartLimiter;

void start_limiter_init(StartLimiter *limiter, unsigned max);

/* Asks once: whoever waits or holds already stays as he is. */
void start_limiter_acquire(StartLimiter *limiter, StartSlot *slot);

/* Gives the turn back, or leaves the queue; the next one's turn comes. Fine for who has neither. */
void start_limiter_release(StartLimiter *limiter, StartSlot *slot);
