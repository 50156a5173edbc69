/* SPDX-License-Identifier: Apache-2.0 */
/* activeDeadlineSeconds: counted from the pod's start, which is on disk with it, so that neither a
 * restart of the agent nor one of the node begins it anew. One timer, for as long as it matters. */

#include "agent/supervise/pod-internal.h"
#include "common/clock.h"
#include "common/log.h"

static uint64_t deadline_of(const PodLife *life) {
        const OptionalInt *seconds = &life->pod->spec.active_deadline_seconds;

        return life->start_time + (uint64_t) seconds->value * USEC_PER_SEC;
}

/* It had come to its end by itself, also where an agent hears of it only now. */
static bool ended_in_time(PodLife *life) {
        PodCourse course = pod_life_course(life);

        if (course != COURSE_FAILED && course != COURSE_DONE)
                return false;
        for (size_t i = 0; i < life->n_containers; i++)
                if (life->order[i].role != ROLE_SIDECAR &&
                    container_finished_at(life->containers[i].life) > deadline_of(life))
                        return false;
        return true;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        PodLife *life = userdata;

        life->deadline_timer = sd_event_source_disable_unref(life->deadline_timer);
        pod_life_mark(life);
        return 0;
}

static void arm(PodLife *life, uint64_t delay_usec) {
        int r = sd_event_add_time_relative(life->context->event, &life->deadline_timer,
                                           CLOCK_BOOTTIME, delay_usec, 0, on_deadline, life);

        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the deadline of pod '%s'", life->description);
}

void pod_life_watch_deadline(PodLife *life) {
        static const char message[] =
                "Pod was active on the node longer than the specified deadline";
        uint64_t now = now_realtime_usec();

        if (!life->pod->spec.active_deadline_seconds.is_set || pod_life_has_failed(life) ||
            !life->is_wanted || life->must_clean || life->phase == PHASE_SYNCING)
                return;
        if (ended_in_time(life)) {
                life->deadline_timer = sd_event_source_disable_unref(life->deadline_timer);
                return;
        }
        if (now < deadline_of(life)) {
                if (!life->deadline_timer)
                        arm(life, deadline_of(life) - now);
                return;
        }
        pod_life_fail(life, POD_EVENT_NORMAL, "DeadlineExceeded", message,
                      pod_life_grace_usec(life));
}
