/* SPDX-License-Identifier: Apache-2.0 */
/* Doubles the delay of a back-off and adds jitter. */

#include "common/back-off.h"

#include "common/clock.h"

#include <sys/random.h>

uint64_t back_off_next_delay(uint64_t delay_usec, const BackOffLimits *limits) {
        if (delay_usec == 0)
                return limits->initial_usec;
        if (delay_usec >= limits->max_usec / 2)
                return limits->max_usec;
        return delay_usec * 2;
}

uint64_t back_off_add_jitter(uint64_t usec, unsigned percent, uint32_t random) {
        return usec + usec / 100 * percent / 1000 * (random % 1001);
}

uint32_t back_off_random(void) {
        uint32_t random = 0;

        if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t) sizeof(random))
                random = (uint32_t) now_boottime_usec();
        return random;
}
