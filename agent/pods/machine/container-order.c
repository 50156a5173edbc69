/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/machine/container-order.h"

static size_t count_init_entries(const ContainerOrderEntry *entries, size_t n) {
        size_t n_init = 0;

        while (n_init < n &&
               (entries[n_init].role == ROLE_INIT || entries[n_init].role == ROLE_SIDECAR))
                n_init++;
        return n_init;
}

static bool is_init_step_done(const ContainerOrderEntry *entry) {
        return entry->role == ROLE_SIDECAR ? entry->has_started : entry->has_succeeded;
}

/* The next init container; their number if all have completed. The last init container that has run
 * is decisive: those before it have completed once, regardless of their current state. */
static size_t find_current_init(const ContainerOrderEntry *entries, size_t n) {
        size_t n_init = count_init_entries(entries, n);

        for (size_t i = n_init; i < n; i++)
                if (entries[i].has_run && entries[i].role == ROLE_MAIN)
                        return n_init;
        for (size_t i = n_init; i > 0; i--)
                if (entries[i - 1].has_run)
                        return is_init_step_done(&entries[i - 1]) ? i : i - 1;
        return 0;
}

static bool all_main_containers_finished(const ContainerOrderEntry *entries, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (entries[i].role == ROLE_MAIN && !entries[i].is_finished)
                        return false;
        return true;
}

PodProgress pod_progress_of(const ContainerOrderEntry *entries, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (entries[i].role == ROLE_INIT && entries[i].is_finished &&
                    !entries[i].has_succeeded)
                        return PROGRESS_FAILED;
        if (all_main_containers_finished(entries, n))
                return PROGRESS_DONE;
        return find_current_init(entries, n) < count_init_entries(entries, n)
                       ? PROGRESS_INITIALIZING
                       : PROGRESS_RUNNING;
}

/* As in the kubelet, which starts containers one after another with their hooks. */
static bool is_start_held_by_post_start(const ContainerOrderEntry *entries, size_t first,
                                        size_t i) {
        for (size_t before = first; before < i; before++)
                if (entries[before].holds_next)
                        return true;
        return false;
}

bool container_order_allows_start(const ContainerOrderEntry *entries, size_t n, size_t i) {
        size_t n_init = count_init_entries(entries, n), current = find_current_init(entries, n);

        if (entries[i].role == ROLE_EPHEMERAL) /* may serve to debug failing init containers */
                return true;
        if (i >= n_init)
                return current == n_init && !is_start_held_by_post_start(entries, n_init, i);
        return i == current || (i < current && entries[i].role == ROLE_SIDECAR);
}

static void plan_container_starts(ContainerOrderEntry *entries, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (entries[i].is_waiting && container_order_allows_start(entries, n, i))
                        entries[i].action = ORDER_START;
}

static void plan_container_stops(ContainerOrderEntry *entries, size_t n, bool is_late) {
        bool is_turn = all_main_containers_finished(entries, n);

        for (size_t i = 0; i < n; i++)
                if (entries[i].role != ROLE_SIDECAR && !entries[i].is_finished)
                        entries[i].action = ORDER_STOP;
        for (size_t i = n; i > 0; i--) {
                ContainerOrderEntry *entry = &entries[i - 1];

                if (entry->role != ROLE_SIDECAR || entry->is_finished)
                        continue;
                entry->action = is_turn || is_late ? ORDER_STOP : ORDER_STOP_IN_TURN;
                is_turn = false;
        }
}

void plan_container_order(ContainerOrderEntry *entries, size_t n,
                          const ContainerOrderInput *input) {
        PodProgress progress = pod_progress_of(entries, n);

        for (size_t i = 0; i < n; i++)
                entries[i].action = ORDER_NOTHING;
        if (input->must_end || progress == PROGRESS_FAILED || progress == PROGRESS_DONE)
                plan_container_stops(entries, n, input->is_late);
        else if (!input->must_hold)
                plan_container_starts(entries, n);
}
