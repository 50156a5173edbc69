/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* sd-event(3) event sources that are created once, disabled, and enabled whenever they are due.
 * Enabling allocates nothing, so work that must be retried is never lost. */

#include <systemd/sd-event.h>

/* Runs once in the turn of the loop in which it is enabled, at this priority. 0 or -errno; the
 * caller unreferences *ret, even after an error. */
int event_add_disabled_defer(sd_event *event, sd_event_source **ret, int64_t priority,
                             sd_event_handler_t handler, void *userdata);

/* The accuracy is in microseconds; 0 is sd-event's default, 250 ms. 0 or -errno, as above. */
int event_add_disabled_timer(sd_event *event, sd_event_source **ret, clockid_t clock,
                             uint64_t accuracy_usec, sd_event_time_handler_t handler,
                             void *userdata);

/* The timer fires once, after the delay. 0 or -errno. */
int event_timer_arm(sd_event_source *timer, uint64_t delay_usec);

/* Likewise, with an accuracy of this fraction of the delay (20: a twentieth), which lets the loop
 * wake up for several timers at once; without a delay it fires immediately. 0 or -errno. */
int event_timer_arm_inexact(sd_event_source *timer, uint64_t delay_usec, uint64_t fraction);

/* The timer fires once, at that time of its clock. 0 or -errno. */
int event_timer_arm_at(sd_event_source *timer, uint64_t usec);
