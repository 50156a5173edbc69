/* SPDX-License-Identifier: Apache-2.0 */

/* The back-off of failed pods; see the header. */

#include "agent/daemonset/rules/failed-pods-backoff.h"

#include "common/clock.h"

#include <stdio.h>

#define DELAY_MIN_USEC (1 * USEC_PER_SEC)
#define DELAY_MAX_USEC (900 * USEC_PER_SEC)

bool failed_pods_backoff_is_over(FailedPodsBackoff *back_off, const char *hash, uint64_t now,
                                 uint64_t *ret_again_at) {
        uint64_t end = back_off->since + back_off->delay_usec;

        if (!streq(back_off->hash, hash) || now > back_off->since + 2 * DELAY_MAX_USEC) {
                *back_off = (FailedPodsBackoff){ 0 };
                (void) snprintf(back_off->hash, sizeof(back_off->hash), "%s", hash);
        }
        if (back_off->delay_usec > 0 && now < end) {
                *ret_again_at = end;
                return false;
        }
        back_off->delay_usec = back_off->delay_usec > 0
                                       ? MIN(2 * back_off->delay_usec, DELAY_MAX_USEC)
                                       : DELAY_MIN_USEC;
        back_off->since = now;
        return true;
}
