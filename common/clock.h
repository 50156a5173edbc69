/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Times are microseconds: 'realtime' since 1970 for what people read, 'boottime' for every
 * decision, so that a clock that is set does not move a back-off. */

#include "common/macros.h"

#include <stdint.h>

#define USEC_PER_SEC  UINT64_C(1000000)
#define USEC_PER_MSEC UINT64_C(1000)
#define USEC_INFINITY UINT64_MAX

uint64_t now_realtime_usec(void);
uint64_t now_boottime_usec(void);

/* Realtime as it was when the clock was started, going on as boottime does: for what is counted
 * from a time that stands on a disk, and must neither end nor begin anew when somebody sets the
 * clock of the machine. */
typedef struct SteadyClock {
        uint64_t offset; /* from boottime */
} SteadyClock;

SteadyClock steady_clock_start(void);
uint64_t steady_now_usec(const SteadyClock *clock);

/* When it was, on the steady clock, what has just been stamped with realtime. The future was now.
 */
uint64_t steady_from_realtime_usec(const SteadyClock *clock, uint64_t realtime_usec);

enum {
        RFC3339_SIZE = sizeof("2026-01-02T03:04:05.123456789Z")
};

/* "2026-01-02T03:04:05Z", as metav1.Time is written. Returns the buffer. */
char *format_rfc3339(char buffer[RFC3339_SIZE], uint64_t realtime_usec);

/* "2026-01-02T03:04:05.123456000Z", as the CRI log format has it. Returns the buffer. */
char *format_rfc3339_nano(char buffer[RFC3339_SIZE], uint64_t realtime_usec);

/* Reads both, with any number of fraction digits and "Z" or an offset. 0 or -EINVAL. */
int parse_rfc3339(const char *text, uint64_t *ret_realtime_usec);
