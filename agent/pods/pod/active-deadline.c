/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/active-deadline.h"

#include "common/clock.h"

void active_deadline_init(ActiveDeadline *deadline, const PodInstance *pod) {
        *deadline = (ActiveDeadline){ .pod = pod, .clock = steady_clock_start() };
        (void) steady_stamp_convert(&deadline->start, &deadline->clock, pod->start_time);
}

/* On the steady clock. */
static uint64_t active_deadline_of(const ActiveDeadline *deadline) {
        const OptionalInt *seconds = &deadline->pod->pod->spec.active_deadline_seconds;

        return deadline->start.steady + (uint64_t) seconds->value * USEC_PER_SEC;
}

bool active_deadline_allows(const ActiveDeadline *deadline, uint64_t finished_at) {
        return steady_from_realtime_usec(&deadline->clock, finished_at) <=
               active_deadline_of(deadline);
}

static int on_active_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        ActiveDeadline *deadline = userdata;

        active_deadline_stop(deadline);
        pod_instance_mark_dirty(deadline->pod);
        return 0;
}

bool active_deadline_check(ActiveDeadline *deadline) {
        const PodInstance *pod = deadline->pod;
        uint64_t now = steady_now_usec(&deadline->clock), end = active_deadline_of(deadline);
        int r;

        if (now >= end)
                return true;
        if (deadline->timer)
                return false;
        r = sd_event_add_time_relative(pod->context->event, &deadline->timer, CLOCK_BOOTTIME,
                                       end - now, 0, on_active_deadline, deadline);
        if (r < 0)
                (void) log_error_errno(r,
                                       "Cannot arm the timer of activeDeadlineSeconds of pod '%s'",
                                       pod->description);
        return false;
}

void active_deadline_stop(ActiveDeadline *deadline) {
        deadline->timer = sd_event_source_disable_unref(deadline->timer);
}
