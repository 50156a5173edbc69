/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How many containers are being created at once. An OCI runtime is a heavy program; five hundred
 * pods that appear in one moment must not mean five hundred of it. First come, first served. */

#include "common/macros.h"

typedef struct Turn Turn;

/* It is this one's turn; called from turn_ask() or from another's turn_leave(). */
typedef void (*turn_t)(void *userdata);

/* Embedded in who asks; zeroed at first. */
struct Turn {
        turn_t on_turn;
        void *userdata;
        Turn *next;
        bool is_waiting;
        bool is_held;
};

typedef struct Turns {
        unsigned max;
        unsigned held;
        bool is_serving;
        Turn *first;
        Turn **end;
} Turns;

void turns_init(Turns *turns, unsigned max);

/* Asks once: whoever waits or holds already stays as he is. */
void turn_ask(Turns *turns, Turn *turn);

/* Gives the turn back, or leaves the queue; the next one's turn comes. Fine for who has neither. */
void turn_leave(Turns *turns, Turn *turn);
