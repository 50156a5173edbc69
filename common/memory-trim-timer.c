/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory-trim-timer.h"

#include "common/clock.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/memory-trim.h"

enum {
        BURST_USEC = 2000000,
        PAUSE_USEC = 150000,
        ACCURACY_USEC = 100000,
};

static sd_event_source *trim_timer; /* of the process, like the heap */
static uint64_t latest_usec;        /* boottime; while it is armed */

static int on_memory_trim_timer(sd_event_source *timer, uint64_t usec, void *userdata) {
        memory_trim();
        return 0;
}

int memory_trim_timer_start(sd_event *event) {
        return event_add_disabled_timer(event, &trim_timer, CLOCK_BOOTTIME, ACCURACY_USEC,
                                        on_memory_trim_timer, NULL);
}

void memory_trim_timer_end(void) {
        trim_timer = sd_event_source_disable_unref(trim_timer);
}

static bool is_trim_due(void) {
        return sd_event_source_get_enabled(trim_timer, NULL) > 0;
}

void memory_trim_timer_schedule(void) {
        if (!trim_timer || is_trim_due())
                return;
        latest_usec = now_boottime_usec() + BURST_USEC;
        (void) event_timer_arm_at(trim_timer, latest_usec);
}

void memory_trim_timer_restart(void) {
        memory_trim_timer_schedule();
        if (trim_timer)
                (void) event_timer_arm_at(trim_timer,
                                          MIN(now_boottime_usec() + PAUSE_USEC, latest_usec));
}

void memory_trim_timer_dump(FILE *out, unsigned depth) {
        dump_timer(out, depth, "memory is released", trim_timer);
}
