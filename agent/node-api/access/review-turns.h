/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Decides which reviews are in progress and which wait. Anyone can send a made-up token, so some
 * slots are reserved for known users, and unknown users wait behind them. Reviews of one kind
 * proceed in the order of arrival. Pure. */

#include "common/macros.h"

typedef enum ReviewKind {
        REVIEW_OF_USER,     /* of access */
        REVIEW_OF_STRANGER, /* of a token, or of access without a token */
        N_REVIEW_KINDS,
} ReviewKind;

enum {
        REVIEW_TURNS_MAX = 8, /* number requested from the agent at the same time */
        REVIEW_STRANGER_TURNS_MAX = 6,
        REVIEWS_WAITING_MAX = 32,
        REVIEW_STRANGERS_WAITING_MAX = 24,
};

typedef struct ReviewQueue {
        unsigned n_turns; /* in progress */
        void *waiting[REVIEWS_WAITING_MAX];
        size_t n_waiting;
} ReviewQueue;

typedef struct ReviewTurns {
        ReviewQueue queues[N_REVIEW_KINDS];
} ReviewTurns;

/* 1: it is the item's turn; 0: it waits; -EBUSY: too many are waiting. */
int review_turns_enter(ReviewTurns *turns, ReviewKind kind, void *item);

/* The item no longer waits; its turn is over. */
void review_turns_leave_queue(ReviewTurns *turns, ReviewKind kind, const void *item);
void review_turns_end(ReviewTurns *turns, ReviewKind kind);

/* A waiting item whose turn has come; NULL: none. */
void *review_turns_next(ReviewTurns *turns);
