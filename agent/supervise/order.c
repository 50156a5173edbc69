/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervise/order.h"

static size_t count_init(const OrderEntry *entries, size_t n) {
        size_t n_init = 0;

        while (n_init < n && entries[n_init].role != ROLE_MAIN)
                n_init++;
        return n_init;
}

static bool is_done(const OrderEntry *entry) {
        return entry->role == ROLE_SIDECAR ? entry->has_started : entry->has_succeeded;
}

/* The container of init whose turn it is; their number when all have had theirs. The last that has
 * run says it: those before it were done once, whatever has become of them since. */
static size_t current(const OrderEntry *entries, size_t n) {
        size_t n_init = count_init(entries, n);

        for (size_t i = n_init; i < n; i++)
                if (entries[i].has_run)
                        return n_init;
        for (size_t i = n_init; i > 0; i--)
                if (entries[i - 1].has_run)
                        return is_done(&entries[i - 1]) ? i : i - 1;
        return 0;
}

static bool all_main_finished(const OrderEntry *entries, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (entries[i].role == ROLE_MAIN && !entries[i].is_finished)
                        return false;
        return true;
}

PodCourse order_course(const OrderEntry *entries, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (entries[i].role == ROLE_INIT && entries[i].is_finished &&
                    !entries[i].has_succeeded)
                        return COURSE_FAILED;
        if (all_main_finished(entries, n))
                return COURSE_DONE;
        return current(entries, n) < count_init(entries, n) ? COURSE_INITIALIZING : COURSE_RUNNING;
}

bool order_allows(const OrderEntry *entries, size_t n, size_t i) {
        size_t n_init = count_init(entries, n), turn = current(entries, n);

        if (i >= n_init)
                return turn == n_init;
        return i == turn || (i < turn && entries[i].role == ROLE_SIDECAR);
}

static void plan_start(OrderEntry *entries, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (entries[i].is_waiting && order_allows(entries, n, i))
                        entries[i].action = ORDER_START;
}

static void plan_end(OrderEntry *entries, size_t n, bool is_late) {
        bool may_end = true; /* all that a sidecar is there for have ended */

        for (size_t i = 0; i < n; i++)
                if (entries[i].role != ROLE_SIDECAR && !entries[i].is_finished) {
                        entries[i].action = ORDER_STOP;
                        may_end = false;
                }
        for (size_t i = n; i > 0; i--) {
                OrderEntry *entry = &entries[i - 1];

                if (entry->role != ROLE_SIDECAR || entry->is_finished)
                        continue;
                entry->action = may_end || is_late ? ORDER_STOP : ORDER_RETIRE;
                may_end = false;
        }
}

void order_plan(OrderEntry *entries, size_t n, const OrderWish *wish) {
        PodCourse course = order_course(entries, n);

        for (size_t i = 0; i < n; i++)
                entries[i].action = ORDER_NOTHING;
        if (wish->must_end || course == COURSE_FAILED || course == COURSE_DONE)
                plan_end(entries, n, wish->is_late);
        else if (!wish->must_hold)
                plan_start(entries, n);
}
