/* SPDX-License-Identifier: Apache-2.0 */
/* The pod fails as a whole, and stops: it was evicted or preempted, was not admitted, exceeded its
 * storage limit or its deadline, or the node shuts down. The representation of a failure on disk is
 * in pod-failure.h. */

#include "agent/pods/pod/event-recorder.h"
#include "agent/pods/pod/pod-preemption.h"
#include "agent/pods/worker/pod-worker-private.h"
#include "common/clock.h"
#include "common/message-ids.h"

#define STORAGE_EVICTION_GRACE_USEC   (1 * USEC_PER_SEC)
#define ADMISSION_EVICTION_GRACE_USEC (1 * USEC_PER_SEC)
/* The default grace period of container engines, which suffices for a container that stops on
 * SIGTERM. */
#define DISPLACEMENT_GRACE_USEC (10 * USEC_PER_SEC)

/* 'message' is the status's message, 'event' the event's. */
static void set_pod_failure(PodWorker *worker, PodEventKind kind, const char *reason,
                            const char *message, const char *event, uint64_t grace_usec) {
        if (pod_failure_set(&worker->failure, reason, message) < 0)
                return; /* the failure will be detected again */
        log_set_message_id(MESSAGE_POD_FAILED);
        log_warning("Pod '%s' has failed, stopping it: %s: %s", worker->instance.description,
                    reason, message);
        record_pod_event(&worker->instance, NULL, kind, reason, "%s", event);
        worker->failure.grace_usec = grace_usec;
        pod_failure_store(&worker->failure, &worker->instance);
        pod_worker_arm_termination(worker, grace_usec);
        pod_instance_mark_dirty(&worker->instance);
}

static void fail_pod_with_event(PodWorker *worker, PodEventKind kind, const char *reason,
                                const char *message, const char *event, uint64_t grace_usec) {
        if (!pod_worker_is_terminating(worker))
                set_pod_failure(worker, kind, reason, message, event, grace_usec);
}

static void fail_pod(PodWorker *worker, PodEventKind kind, const char *reason, const char *message,
                     uint64_t grace_usec) {
        fail_pod_with_event(worker, kind, reason, message, message, grace_usec);
}

static void fail_rejected_pod(PodWorker *worker) {
        const PodAdmission *admission = &worker->admission;

        fail_pod_with_event(worker, POD_EVENT_WARNING, admission->rejection_reason,
                            admission->rejection_message, pod_admission_event_message(admission),
                            ADMISSION_EVICTION_GRACE_USEC);
}

bool pod_worker_evict(PodWorker *worker, NodeCondition condition, const char *message,
                      int64_t max_grace_seconds, uint64_t *ret_grace_usec) {
        uint64_t grace = pod_worker_grace_period(worker);

        if (pod_worker_is_terminating(worker))
                return false;
        if (max_grace_seconds >= 0)
                grace = MIN(grace, (uint64_t) MAX(max_grace_seconds, 1) * USEC_PER_SEC);
        worker->failure.condition = condition;
        worker->failure.evicted_at = now_realtime_usec();
        fail_pod(worker, POD_EVENT_WARNING, "Evicted", message, grace);
        if (!pod_worker_has_failed(worker)) {
                pod_failure_done(&worker->failure);
                return false;
        }
        *ret_grace_usec = grace;
        return true;
}

uint64_t pod_worker_evicted_at(const PodWorker *worker, NodeCondition *ret_condition) {
        *ret_condition = worker->failure.condition;
        return pod_worker_has_failed(worker) ? worker->failure.evicted_at : 0;
}

bool pod_worker_is_stopping_failed(const PodWorker *worker) {
        return pod_worker_has_failed(worker) && worker->sandbox.state != WORKER_NO_SANDBOX;
}

void pod_worker_preempt(PodWorker *worker) {
        fail_pod(worker, POD_EVENT_WARNING, PREEMPTION_REASON, PREEMPTION_MESSAGE,
                 pod_worker_grace_period(worker));
}

void pod_worker_displace(PodWorker *worker, const char *reason, const char *message) {
        uint64_t grace_usec = MIN(pod_worker_grace_period(worker), DISPLACEMENT_GRACE_USEC);
        bool was_stopping = pod_worker_is_terminating(worker);

        if (worker->failure.grace_usec > 0 && worker->failure.grace_usec <= DISPLACEMENT_GRACE_USEC)
                return;
        if (!pod_worker_has_failed(worker))
                set_pod_failure(worker, POD_EVENT_WARNING, reason, message, message, grace_usec);
        if (!was_stopping || !pod_worker_has_failed(worker))
                return;
        worker->failure.grace_usec = grace_usec;
        pod_failure_store(&worker->failure, &worker->instance);
        pod_worker_shorten_grace(worker);
        pod_instance_mark_dirty(&worker->instance);
}

bool pod_worker_is_stopping_preempted(const PodWorker *worker) {
        return pod_worker_is_stopping_failed(worker) &&
               streq(worker->failure.reason, PREEMPTION_REASON);
}

void pod_worker_shut_down(PodWorker *worker, uint64_t grace_usec) {
        if (pod_worker_has_terminated(worker) ||
            pod_failure_set(&worker->failure, "Terminated",
                            "Pod was terminated in response to imminent node shutdown.") < 0)
                return;
        worker->failure.grace_usec = MAX(grace_usec, (uint64_t) 1);
        worker->failure.is_until_reboot = true;
        pod_worker_arm_termination(worker, grace_usec);
        pod_instance_mark_dirty(&worker->instance);
}

/* Works like a restart of all containers: waits for containers that are being stopped, and needs no
 * sandbox. */
void pod_worker_cancel_shutdown(PodWorker *worker) {
        if (!worker->failure.is_until_reboot)
                return;
        pod_failure_done(&worker->failure);
        worker->termination_timer = sd_event_source_disable_unref(worker->termination_timer);
        pod_containers_restart_stopped(&worker->containers);
        pod_instance_mark_dirty(&worker->instance);
}

void pod_worker_exceed_storage_limit(const char *message, void *userdata) {
        fail_pod(userdata, POD_EVENT_WARNING, "Evicted", message, STORAGE_EVICTION_GRACE_USEC);
}

bool pod_worker_is_admitted(PodWorker *worker) {
        const PodAdmission *admission = &worker->admission;

        if (pod_admission_check(&worker->admission, &worker->instance))
                return true;
        /* The API server's controllers replace a rejected pod, so that it must not start later. */
        if (admission->rejection_message && pod_is_of_api(worker->instance.pod))
                fail_rejected_pod(worker);
        return false;
}

void pod_worker_enforce_deadline(PodWorker *worker) {
        const PodInstance *instance = &worker->instance;
        uint64_t finished_at;

        if (!instance->pod->spec.active_deadline_seconds.is_set ||
            pod_worker_is_terminating(worker) || worker->sandbox.needs_cleanup ||
            worker->sandbox.state == WORKER_SYNCING)
                return;
        /* It completed in time, even if the agent is notified only now. */
        if (pod_containers_have_completed(&worker->containers, &finished_at) &&
            active_deadline_allows(&worker->deadline, finished_at)) {
                active_deadline_stop(&worker->deadline);
                return;
        }
        if (active_deadline_check(&worker->deadline))
                fail_pod(worker, POD_EVENT_NORMAL, "DeadlineExceeded",
                         "Pod was active on the node longer than the specified deadline",
                         pod_worker_grace_period(worker));
}
