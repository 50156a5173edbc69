/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* activeDeadlineSeconds: a pod that runs for longer has failed with DeadlineExceeded. The time
 * counts from the pod's start, which is on disk, so neither a restart of the agent nor a reboot
 * resets it. Setting the clock does not move it; of a pod that started before the clock was set, an
 * agent that finds it later counts from then.
 */

#include "agent/pods/pod/pod-instance.h"
#include "common/clock.h"

typedef struct ActiveDeadline {
        const PodInstance *pod;
        SteadyClock clock;
        SteadyStamp start;
        sd_event_source *timer;
} ActiveDeadline;

/* Before the others; the pod is borrowed. */
void active_deadline_init(ActiveDeadline *deadline, const PodInstance *pod);

/* True once the deadline has passed; before that a timer marks the pod dirty when it does. */
bool active_deadline_check(ActiveDeadline *deadline);

/* A container that ended at 'finished_at' (realtime) ended in time. */
bool active_deadline_allows(const ActiveDeadline *deadline, uint64_t finished_at);

/* The deadline has changed, or does not apply any more. */
void active_deadline_stop(ActiveDeadline *deadline);
