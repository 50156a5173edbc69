/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Limits how many containers are created at the same time: an OCI runtime is a heavy program, and
 * hundreds of pods may appear at once. A semaphore with a queue, first in, first out. */

#include "common/macros.h"

#include <stdint.h>

typedef struct StartSlot StartSlot;

/* The slot is acquired; called from start_limiter_acquire(), or from start_limiter_release() of
 * another slot. */
typedef void (*start_slot_acquired_t)(void *userdata);

/* Embedded in its owner; initially { 0 }. */
struct StartSlot {
        start_slot_acquired_t on_acquired;
        void *userdata;
        StartSlot *next;
        bool is_waiting;
        bool is_held;
};

typedef struct StartLimit {
        unsigned max;
        bool is_of_memory; /* more runtimes would not fit into memory: a slow one keeps its slot */
} StartLimit;

typedef struct StartLimiter {
        StartLimit limit;
        unsigned held;
        bool is_granting;
        StartSlot *first;
        StartSlot **end;
} StartLimiter;

/* How many containers may be created at the same time: two per CPU or four, whichever is more,
 * unless the machine has too little memory for so many runtimes. 'memory_bytes': of the machine; 0:
 * unknown. */
StartLimit start_limit_of(unsigned n_cpus, uint64_t memory_bytes);

void start_limiter_init(StartLimiter *limiter, StartLimit limit);

/* Does nothing if the slot is already waiting or held. */
void start_limiter_acquire(StartLimiter *limiter, StartSlot *slot);

/* Releases the slot, or removes it from the queue; the next slot in the queue is acquired. Does
 * nothing if the slot is neither held nor waiting. */
void start_limiter_release(StartLimiter *limiter, StartSlot *slot);
