/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/access/review-turns.h"

#include <errno.h>
#include <string.h>

static bool has_free_turn(const ReviewTurns *turns, ReviewKind kind) {
        unsigned n_strangers = turns->queues[REVIEW_OF_STRANGER].n_turns;

        return n_strangers + turns->queues[REVIEW_OF_USER].n_turns < REVIEW_TURNS_MAX &&
               (kind != REVIEW_OF_STRANGER || n_strangers < REVIEW_STRANGER_TURNS_MAX);
}

static bool has_free_place(const ReviewTurns *turns, ReviewKind kind) {
        size_t n_strangers = turns->queues[REVIEW_OF_STRANGER].n_waiting;

        return n_strangers + turns->queues[REVIEW_OF_USER].n_waiting < REVIEWS_WAITING_MAX &&
               (kind != REVIEW_OF_STRANGER || n_strangers < REVIEW_STRANGERS_WAITING_MAX);
}

int review_turns_enter(ReviewTurns *turns, ReviewKind kind, void *item) {
        ReviewQueue *queue = &turns->queues[kind];

        if (has_free_turn(turns, kind)) {
                queue->n_turns++;
                return 1;
        }
        if (!has_free_place(turns, kind))
                return -EBUSY;
        queue->waiting[queue->n_waiting++] = item;
        return 0;
}

void review_turns_leave_queue(ReviewTurns *turns, ReviewKind kind, const void *item) {
        ReviewQueue *queue = &turns->queues[kind];
        size_t n = 0;

        for (size_t i = 0; i < queue->n_waiting; i++)
                if (queue->waiting[i] != item)
                        queue->waiting[n++] = queue->waiting[i];
        queue->n_waiting = n;
}

void review_turns_end(ReviewTurns *turns, ReviewKind kind) {
        turns->queues[kind].n_turns--;
}

void *review_turns_next(ReviewTurns *turns) {
        /* Users first. */
        for (ReviewKind kind = 0; kind < N_REVIEW_KINDS; kind++) {
                ReviewQueue *queue = &turns->queues[kind];
                void *item = queue->waiting[0];

                if (queue->n_waiting == 0 || !has_free_turn(turns, kind))
                        continue;
                review_turns_leave_queue(turns, kind, item);
                queue->n_turns++;
                return item;
        }
        return NULL;
}
