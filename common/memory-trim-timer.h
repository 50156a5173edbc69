/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A timer that calls memory_trim() after a burst of work. */

#include <systemd/sd-event.h>

/* Off at first. 0 or -errno. */
int memory_trim_timer_new(sd_event *event, sd_event_source **ret);

/* Two seconds after the first call: in a long burst of work it fires a few times. */
void memory_trim_timer_schedule(sd_event_source *timer);

/* About 0.2 s after the last call. */
void memory_trim_timer_restart(sd_event_source *timer);
