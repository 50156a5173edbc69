/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory-trim-timer.h"

#include "common/event-source.h"
#include "common/memory-trim.h"

enum {
        BURST_USEC = 2000000,
        PAUSE_USEC = 150000,
        ACCURACY_USEC = 100000,
};

static int on_memory_trim_timer(sd_event_source *timer, uint64_t usec, void *userdata) {
        memory_trim();
        return 0;
}

int memory_trim_timer_new(sd_event *event, sd_event_source **ret) {
        return event_add_disabled_timer(event, ret, CLOCK_BOOTTIME, ACCURACY_USEC,
                                        on_memory_trim_timer, NULL);
}

void memory_trim_timer_schedule(sd_event_source *timer) {
        if (sd_event_source_get_enabled(timer, NULL) == 0)
                (void) event_timer_arm(timer, BURST_USEC);
}

void memory_trim_timer_restart(sd_event_source *timer) {
        (void) event_timer_arm(timer, PAUSE_USEC);
}
