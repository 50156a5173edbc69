/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* activeDeadlineSeconds: a pod that runs for longer fails with DeadlineExceeded. The time counts
 * from the pod's start, which is on disk, so neither a restart of the agent nor a reboot resets it.
 * Setting the clock does not move the deadline; for a pod that started before the clock was set, a
 * later agent counts from the time at which it was set. */

#include "agent/pods/pod/pod-instance.h"
#include "common/clock.h"

typedef struct ActiveDeadline {
        const PodInstance *pod;
        SteadyClock clock;
        SteadyStamp start;
        sd_event_source *timer;
} ActiveDeadline;

/* To be called before the other functions; the pod is borrowed. */
void active_deadline_init(ActiveDeadline *deadline, const PodInstance *pod);

/* True once the deadline has passed; before that, sets a timer that marks the pod dirty at the
 * deadline. */
bool active_deadline_check(ActiveDeadline *deadline);

/* Whether a container that ended at 'finished_at' (realtime) ended in time. */
bool active_deadline_allows(const ActiveDeadline *deadline, uint64_t finished_at);

/* The deadline has changed, or no longer applies. */
void active_deadline_stop(ActiveDeadline *deadline);
