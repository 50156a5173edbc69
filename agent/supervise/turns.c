/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervise/turns.h"

void turns_init(Turns *turns, unsigned max) {
        *turns = (Turns){ .max = max };
        turns->end = &turns->first;
}

static Turn *dequeue_first(Turns *turns) {
        Turn *turn = turns->first;

        turns->first = turn->next;
        if (!turns->first)
                turns->end = &turns->first;
        turn->next = NULL;
        turn->is_waiting = false;
        return turn;
}

static void dequeue(Turns *turns, Turn *turn) {
        Turn **link = &turns->first;

        while (*link != turn)
                link = &(*link)->next;
        *link = turn->next;
        if (!turn->next)
                turns->end = link;
        turn->next = NULL;
        turn->is_waiting = false;
}

/* Whoever has his turn may give it back at once, and five hundred may do so in a row: that is a
 * loop, not a recursion. */
static void serve(Turns *turns) {
        if (turns->is_serving)
                return;
        turns->is_serving = true;
        while (turns->first && turns->held < turns->max) {
                Turn *turn = dequeue_first(turns);

                turn->is_held = true;
                turns->held++;
                turn->on_turn(turn->userdata);
        }
        turns->is_serving = false;
}

void turn_ask(Turns *turns, Turn *turn) {
        if (turn->is_waiting || turn->is_held)
                return;
        turn->is_waiting = true;
        *turns->end = turn;
        turns->end = &turn->next;
        serve(turns);
}

void turn_leave(Turns *turns, Turn *turn) {
        if (turn->is_waiting)
                dequeue(turns, turn);
        if (!turn->is_held)
                return;
        turn->is_held = false;
        turns->held--;
        serve(turns);
}
