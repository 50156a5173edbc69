/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The timer of this process that calls memory_trim() after a burst of work. */

#include <stdio.h>
#include <systemd/sd-event.h>

/* Creates the timer; before that, and after its end, requests do nothing. 0 or -errno. */
int memory_trim_timer_start(sd_event *event);
void memory_trim_timer_end(void);

/* Fires two seconds after the first call, so during a long burst of work it fires a few times. */
void memory_trim_timer_schedule(void);

/* Fires about 0.2 s after the last call, but no later than two seconds after the first call of
 * either function. */
void memory_trim_timer_restart(void);

/* Prints when it will fire, see dump_timer(). */
void memory_trim_timer_dump(FILE *out, unsigned depth);
