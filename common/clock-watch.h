/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reports that the machine's clock was set, for code that waits for a certain time of day. It is a
 * timer that never fires (TFD_TIMER_CANCEL_ON_SET), so it costs no wake-up. Steps of less than a
 * minute and suspensions are not reported. */

#include "common/macros.h"

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct ClockWatch ClockWatch;

/* 'on_set' is called from the loop, a few times in ten seconds at most; the last step is always
 * reported. 0 or -errno. */
int clock_watch_new(sd_event *event, void (*on_set)(void *userdata), void *userdata,
                    ClockWatch **ret);
ClockWatch *clock_watch_free(ClockWatch *watch);
DEFINE_CLEANUP(ClockWatch *, clock_watch_free)

/* Whether a change of the offset between realtime and boottime is a step that must be reported;
 * small changes add up. Both in microseconds, modulo 2⁶⁴. */
bool clock_step_matters(uint64_t reported_offset, uint64_t offset);
