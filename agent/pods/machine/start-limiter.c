/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/machine/start-limiter.h"

/* A runtime written in Go takes about 20 MiB with its helper programs, and other programs need
 * memory, too. */
#define MEMORY_PER_START_BYTES (64 * MIB)

StartLimit start_limit_of(unsigned n_cpus, uint64_t memory_bytes) {
        unsigned max = MAX(2 * n_cpus, 4);
        uint64_t affordable = MAX(memory_bytes / MEMORY_PER_START_BYTES, 1);
        bool is_of_memory = memory_bytes > 0 && affordable <= max;

        return (StartLimit){ is_of_memory ? (unsigned) affordable : max, is_of_memory };
}

void start_limiter_init(StartLimiter *limiter, StartLimit limit) {
        *limiter = (StartLimiter){ .limit = limit };
        limiter->end = &limiter->first;
}

static StartSlot *dequeue_first_start_slot(StartLimiter *limiter) {
        StartSlot *slot = limiter->first;

        limiter->first = slot->next;
        if (!limiter->first)
                limiter->end = &limiter->first;
        slot->next = NULL;
        slot->is_waiting = false;
        return slot;
}

static void dequeue_start_slot(StartLimiter *limiter, StartSlot *slot) {
        StartSlot **link = &limiter->first;

        while (*link != slot)
                link = &(*link)->next;
        *link = slot->next;
        if (!slot->next)
                limiter->end = link;
        slot->next = NULL;
        slot->is_waiting = false;
}

/* A holder may release its slot immediately, and hundreds may do so in a row, so this is a loop
 * instead of a recursion.
 */
static void grant_start_slots(StartLimiter *limiter) {
        if (limiter->is_granting)
                return;
        limiter->is_granting = true;
        while (limiter->first && limiter->held < limiter->limit.max) {
                StartSlot *slot = dequeue_first_start_slot(limiter);

                slot->is_held = true;
                limiter->held++;
                slot->on_acquired(slot->userdata);
        }
        limiter->is_granting = false;
}

void start_limiter_acquire(StartLimiter *limiter, StartSlot *slot) {
        if (slot->is_waiting || slot->is_held)
                return;
        slot->is_waiting = true;
        *limiter->end = slot;
        limiter->end = &slot->next;
        grant_start_slots(limiter);
}

void start_limiter_release(StartLimiter *limiter, StartSlot *slot) {
        if (slot->is_waiting)
                dequeue_start_slot(limiter, slot);
        if (!slot->is_held)
                return;
        slot->is_held = false;
        limiter->held--;
        grant_start_slots(limiter);
}
