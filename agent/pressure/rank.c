/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pressure/rank.h"

#include <stdlib.h>

enum {
        WORTH_PART = 100, /* of what is missing */
};

static int compare(int64_t a, int64_t b) {
        return a < b ? -1 : a > b;
}

static int by_known(const PodUse *a, const PodUse *b) {
        return compare(b->is_known, a->is_known);
}

static int64_t excess(const PodUse *use) {
        return use->used - use->requested;
}

static int by_excess(const PodUse *a, const PodUse *b) {
        int order = by_known(a, b);

        if (order == 0)
                order = compare(excess(b) > 0, excess(a) > 0);
        if (order == 0)
                order = compare(a->priority, b->priority);
        if (order == 0)
                order = compare(excess(b), excess(a));
        return order != 0 ? order : compare((int64_t) a->index, (int64_t) b->index);
}

static int by_priority(const PodUse *a, const PodUse *b) {
        int order = compare(a->priority, b->priority);

        if (order == 0)
                order = by_known(a, b);
        if (order == 0)
                order = compare(b->used, a->used);
        return order != 0 ? order : compare((int64_t) a->index, (int64_t) b->index);
}

static int qsort_by_excess(const void *a, const void *b) {
        return by_excess(a, b);
}

static int qsort_by_priority(const void *a, const void *b) {
        return by_priority(a, b);
}

void rank_pods(EvictionSignal signal, PodUse *uses, size_t n) {
        qsort(uses, n, sizeof(*uses),
              signal == EVICTION_PIDS ? qsort_by_priority : qsort_by_excess);
}

bool rank_is_worth_it(EvictionSignal signal, const PodUse *use, int64_t missing) {
        if (eviction_signals[signal].condition != NODE_DISK_PRESSURE)
                return true;
        return use->is_known && use->used > missing / WORTH_PART;
}
