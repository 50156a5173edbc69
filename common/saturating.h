/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sums of sizes that come from untrusted sources: they saturate instead of overflowing. */

#include <stdint.h>

static inline uint64_t add_saturating(uint64_t a, uint64_t b) {
        uint64_t sum;

        return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* The same for amounts, which are never negative. */
static inline int64_t add_amounts_saturating(int64_t a, int64_t b) {
        int64_t sum;

        return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}
