/* SPDX-License-Identifier: Apache-2.0 */
/* activeDeadlineSeconds: counted from the pod's start, which is on disk with it, so that neither a
 * restart of the agent nor one of the node begins it anew. One timer, for as long as it matters. */

#include "agent/pods/pod-worker-private.h"
#include "common/clock.h"
#include "common/log.h"

static uint64_t active_deadline_of(const PodWorker *worker) {
        const OptionalInt *seconds = &worker->pod->spec.active_deadline_seconds;

        return worker->start_time + (uint64_t) seconds->value * USEC_PER_SEC;
}

/* It had come to its end by itself, also where an agent hears of it only now. */
static bool finished_before_deadline(PodWorker *worker) {
        PodProgress progress = pod_worker_progress(worker);

        if (progress != PROGRESS_FAILED && progress != PROGRESS_DONE)
                return false;
        for (size_t i = 0; i < worker->n_containers; i++)
                if (worker->container_order[i].role != ROLE_SIDECAR &&
                    container_machine_finished_at(worker->containers[i].machine) >
                            active_deadline_of(worker))
                        return false;
        return true;
}

static int on_active_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        PodWorker *worker = userdata;

        worker->deadline_timer = sd_event_source_disable_unref(worker->deadline_timer);
        pod_worker_mark_dirty(worker);
        return 0;
}

static void arm_deadline_timer(PodWorker *worker, uint64_t delay_usec) {
        int r = sd_event_add_time_relative(worker->context->event, &worker->deadline_timer,
                                           CLOCK_BOOTTIME, delay_usec, 0, on_active_deadline,
                                           worker);

        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the deadline of pod '%s'",
                                       worker->description);
}

void pod_worker_enforce_deadline(PodWorker *worker) {
        static const char message[] =
                "Pod was active on the node longer than the specified deadline";
        uint64_t now = now_realtime_usec();

        if (!worker->pod->spec.active_deadline_seconds.is_set || pod_worker_has_failed(worker) ||
            !worker->is_desired || worker->needs_cleanup || worker->state == WORKER_SYNCING)
                return;
        if (finished_before_deadline(worker)) {
                worker->deadline_timer = sd_event_source_disable_unref(worker->deadline_timer);
                return;
        }
        if (now < active_deadline_of(worker)) {
                if (!worker->deadline_timer)
                        arm_deadline_timer(worker, active_deadline_of(worker) - now);
                return;
        }
        pod_worker_fail(worker, POD_EVENT_NORMAL, "DeadlineExceeded", message,
                        pod_worker_grace_usec(worker));
}
