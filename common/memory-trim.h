/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Returns memory after a burst of work: free pages of the heap, and pages of the program and its
 * libraries that were used only for start. The kernel's cache has those when used again. */

#include <systemd/sd-event.h>

/* Takes about a millisecond. */
void memory_trim(void);

/* A timer that does so, off at first. 0 or -errno. */
int memory_trim_timer_new(sd_event *event, sd_event_source **ret);

/* Two seconds after the first call: in a long burst of work it fires a few times. */
void memory_trim_timer_schedule(sd_event_source *timer);

/* About 0.2 s after the last call. */
void memory_trim_timer_restart(sd_event_source *timer);
