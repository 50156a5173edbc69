/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Times in microseconds: 'realtime' since 1970 for display, 'boottime' for every decision, so that
 * setting the clock does not move a back-off. 'awake' does not advance while the machine sleeps: it
 * measures the time that a process has, for example to answer a probe or to exit. */

#include "common/macros.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define USEC_PER_SEC  UINT64_C(1000000)
#define USEC_PER_MSEC UINT64_C(1000)
#define USEC_INFINITY UINT64_MAX

uint64_t now_realtime_usec(void);
uint64_t now_boottime_usec(void);
uint64_t now_awake_usec(void);

/* Its clock ID for timers. */
#define CLOCK_AWAKE CLOCK_MONOTONIC

/* The steady clock: realtime at the start of the process, advancing like boottime. For periods that
 * start at a time stored on disk, and that must be unaffected when the machine's clock is set. */
typedef struct SteadyClock {
        uint64_t offset; /* from boottime */
} SteadyClock;

SteadyClock steady_clock_start(void);
uint64_t steady_now_usec(const SteadyClock *clock);

/* The time on the steady clock since which the machine has been awake, as far as the queries show;
 * initially the start of the process. For deadlines that may pass while the machine sleeps, when no
 * process can meet them. */
typedef struct AwakeSince {
        uint64_t usec;
        uint64_t slept; /* total time asleep until then, since the boot */
} AwakeSince;

AwakeSince awake_since_start(const SteadyClock *clock);
uint64_t awake_since_usec(AwakeSince *awake, const SteadyClock *clock);

/* Converts a realtime stamp that was just taken to the steady clock. A stamp in the future counts
 * as now. */
uint64_t steady_from_realtime_usec(const SteadyClock *clock, uint64_t realtime_usec);

/* The same for a persistent stamp, such as that of a condition, during whose lifetime the machine's
 * clock may be set. It is converted when it is first seen, and the result is kept as long as the
 * stamp stays the same. The age of a stamp from before the clock was set is unknown, so it counts
 * as now. */
typedef struct SteadyStamp {
        uint64_t realtime; /* 0: no stamp was seen yet */
        uint64_t steady;
} SteadyStamp;

uint64_t steady_stamp_convert(SteadyStamp *stamp, const SteadyClock *clock, uint64_t realtime_usec);

/* Whether the clock can be right, which means not earlier than the build of this program. A machine
 * without a clock battery starts in 1970, or at the time when it was switched off. */
bool clock_is_set(uint64_t realtime_usec);

/* Like gmtime_r and timegm, except that a time zone with leap seconds (TZ=right/UTC) does not
 * affect the results, because it must not affect times that are written or exchanged. Second 60 is
 * the first second of the next minute. */
void utc_from_seconds(uint64_t seconds, struct tm *ret);
int64_t utc_to_seconds(const struct tm *tm);

enum {
        RFC3339_SIZE = sizeof("2026-01-02T03:04:05.123456789Z")
};

/* "2026-01-02T03:04:05Z", the format of metav1.Time. Returns the buffer. */
char *format_rfc3339(char buffer[RFC3339_SIZE], uint64_t realtime_usec);

/* "2026-01-02T03:04:05.123456000Z", the format of CRI logs. Returns the buffer. */
char *format_rfc3339_nano(char buffer[RFC3339_SIZE], uint64_t realtime_usec);

/* "the clock of this machine says 2036-01-31", for messages about objects with a validity period.
 * It contains only the date, so that the text changes at most once a day. Returns the buffer. */
enum {
        CLOCK_DESCRIPTION_SIZE = 80
};
const char *clock_describe(char buffer[CLOCK_DESCRIPTION_SIZE], uint64_t realtime_usec);

/* The continuation of such a message. */
#define CLOCK_RETRY_HINT "it is tried again when the clock is set"

/* Parses both, with any number of fraction digits and "Z" or an offset. 0 or -EINVAL. */
int parse_rfc3339(const char *text, uint64_t *ret_realtime_usec);
