/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/pod-ranking.h"

#include <stdlib.h>

enum {
        MIN_FREED_PART = 100, /* a hundredth of the missing space */
};

static int compare_int64(int64_t a, int64_t b) {
        return a < b ? -1 : a > b;
}

static int compare_known(const PodUsage *a, const PodUsage *b) {
        return compare_int64(b->is_known, a->is_known);
}

static int64_t usage_above_request(const PodUsage *usage) {
        return usage->used - usage->requested;
}

static int compare_excess(const PodUsage *a, const PodUsage *b) {
        int order = compare_known(a, b);

        if (order == 0)
                order = compare_int64(usage_above_request(b) > 0, usage_above_request(a) > 0);
        if (order == 0)
                order = compare_int64(a->priority, b->priority);
        if (order == 0)
                order = compare_int64(usage_above_request(b), usage_above_request(a));
        return order != 0 ? order : compare_int64((int64_t) a->index, (int64_t) b->index);
}

static int compare_priority(const PodUsage *a, const PodUsage *b) {
        int order = compare_int64(a->priority, b->priority);

        if (order == 0)
                order = compare_known(a, b);
        if (order == 0)
                order = compare_int64(b->used, a->used);
        return order != 0 ? order : compare_int64((int64_t) a->index, (int64_t) b->index);
}

static int qsort_by_excess(const void *a, const void *b) {
        return compare_excess(a, b);
}

static int qsort_by_priority(const void *a, const void *b) {
        return compare_priority(a, b);
}

void rank_pods_for_eviction(EvictionSignal signal, PodUsage *usages, size_t n) {
        qsort(usages, n, sizeof(*usages),
              signal == EVICTION_PIDS ? qsort_by_priority : qsort_by_excess);
}

bool eviction_frees_enough(EvictionSignal signal, const PodUsage *usage, int64_t missing) {
        if (eviction_signals[signal].condition != NODE_DISK_PRESSURE)
                return true;
        return usage->is_known && usage->used > missing / MIN_FREED_PART;
}
