/* SPDX-License-Identifier: Apache-2.0 */
#include "common/event-source.h"

#include "common/macros.h"

int event_add_disabled_defer(sd_event *event, sd_event_source **ret, int64_t priority,
                             sd_event_handler_t handler, void *userdata) {
        int r = sd_event_add_defer(event, ret, handler, userdata);

        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
        return r < 0 ? r : sd_event_source_set_priority(*ret, priority);
}

int event_add_disabled_timer(sd_event *event, sd_event_source **ret, clockid_t clock,
                             uint64_t accuracy_usec, sd_event_time_handler_t handler,
                             void *userdata) {
        int r = sd_event_add_time(event, ret, clock, 0, accuracy_usec, handler, userdata);

        return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

int event_timer_arm(sd_event_source *timer, uint64_t delay_usec) {
        int r = sd_event_source_set_time_relative(timer, delay_usec);

        return r < 0 ? r : sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

int event_timer_arm_inexact(sd_event_source *timer, uint64_t delay_usec, uint64_t fraction) {
        /* An accuracy of 0 would be sd-event's default. */
        int r = sd_event_source_set_time_accuracy(timer, MAX(delay_usec / fraction, UINT64_C(1)));

        return r < 0 ? r : event_timer_arm(timer, delay_usec);
}

int event_timer_arm_at(sd_event_source *timer, uint64_t usec) {
        int r = sd_event_source_set_time(timer, usec);

        return r < 0 ? r : sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}
