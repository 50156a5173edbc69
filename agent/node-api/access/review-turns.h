/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which reviews are under way, and which wait. Anyone can send a made-up token, so unknown users
 * leave some turns and places to known ones, and wait behind them. Reviews of one kind have their
 * turns in the order of arrival. Pure. */

#include "common/macros.h"

typedef enum ReviewKind {
        REVIEW_OF_USER,     /* of access */
        REVIEW_OF_STRANGER, /* of a token, or of access without one */
        N_REVIEW_KINDS,
} ReviewKind;

enum {
        REVIEW_TURNS_MAX = 8, /* that are requested from the agent at once */
        REVIEW_STRANGER_TURNS_MAX = 6,
        REVIEWS_WAITING_MAX = 32,
        REVIEW_STRANGERS_WAITING_MAX = 24,
};

typedef struct ReviewQueue {
        unsigned n_turns; /* under way */
        void *waiting[REVIEWS_WAITING_MAX];
        size_t n_waiting;
} ReviewQueue;

typedef struct ReviewTurns {
        ReviewQueue queues[N_REVIEW_KINDS];
} ReviewTurns;

/* 1: the item has its turn; 0: it waits; -EBUSY: too many wait. */
int review_turns_enter(ReviewTurns *turns, ReviewKind kind, void *item);

/* It does not wait any more; it has had its turn. */
void review_turns_leave_queue(ReviewTurns *turns, ReviewKind kind, const void *item);
void review_turns_end(ReviewTurns *turns, ReviewKind kind);

/* A waiting item, which has its turn now; NULL: none. */
void *review_turns_next(ReviewTurns *turns);
