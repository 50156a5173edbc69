/* SPDX-License-Identifier: Apache-2.0 */

/* The back-off of failed pods; see the header. */

#include "agent/daemonset/rules/failed-pods-back-off.h"

#include "common/back-off.h"
#include "common/clock.h"

#include <stdio.h>

static const BackOffLimits failed_pods_limits = { 1 * USEC_PER_SEC, 900 * USEC_PER_SEC };

bool failed_pods_back_off_is_over(FailedPodsBackOff *back_off, const char *hash, uint64_t now,
                                  uint64_t *ret_again_at) {
        uint64_t end = back_off->since + back_off->delay_usec;

        if (!streq(back_off->hash, hash) ||
            now > back_off->since + 2 * failed_pods_limits.max_usec) {
                *back_off = (FailedPodsBackOff){ 0 };
                (void) snprintf(back_off->hash, sizeof(back_off->hash), "%s", hash);
        }
        if (back_off->delay_usec > 0 && now < end) {
                *ret_again_at = end;
                return false;
        }
        back_off->delay_usec = back_off_next_delay(back_off->delay_usec, &failed_pods_limits);
        back_off->since = now;
        return true;
}
