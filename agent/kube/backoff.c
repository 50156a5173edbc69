/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/backoff.h"

#include "common/clock.h"

#include <sys/random.h>

enum {
        RESET_SEC = 120,
        RETRY_AFTER_JITTER = 25, /* percent */
};

const BackoffPace backoff_pace = { 800 * USEC_PER_MSEC, 30 * USEC_PER_SEC };
const BackoffPace backoff_slow_pace = { 10 * USEC_PER_SEC, 300 * USEC_PER_SEC };

uint64_t jitter(uint64_t usec, unsigned percent, uint32_t chance) {
        return usec + usec / 100 * percent / 1000 * (chance % 1001);
}

uint64_t backoff_next(Backoff *backoff, const BackoffPace *pace, uint64_t now,
                      uint64_t retry_after_usec, uint32_t chance) {
        uint64_t wait = pace->first_usec, asked;

        if (backoff->n_failures > 0 &&
            now - backoff->failed_at > pace->max_usec * 2 + RESET_SEC * USEC_PER_SEC)
                backoff->n_failures = 0;
        for (unsigned i = 0; i < backoff->n_failures && wait < pace->max_usec; i++)
                wait *= 2;
        backoff->n_failures++;
        backoff->failed_at = now;
        wait = jitter(MIN(wait, pace->max_usec), 100, chance);
        asked = jitter(retry_after_usec, RETRY_AFTER_JITTER, chance);
        return MAX(wait, asked);
}

void backoff_reset(Backoff *backoff) {
        *backoff = (Backoff){ 0 };
}

uint32_t chance_now(void) {
        uint32_t chance = 0;

        if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) != (ssize_t) sizeof(chance))
                chance = (uint32_t) now_boottime_usec();
        return chance;
}
