/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a pod worker for `mainstay debug dump`: sandbox, network, timers, errors, containers.
 */

#include "agent/pods/worker/pod-worker-private.h"

#include "common/clock.h"
#include "common/dump.h"

#include <inttypes.h>

static void dump_pod_sandbox(const PodWorker *worker, FILE *out) {
        const PodSandboxProgress *sandbox = &worker->sandbox;
        const PodInstance *pod = &worker->instance;
        char delay[DUMP_DURATION_SIZE];

        dump_line(out, 2, "sandbox: %s, pid %d%s%s%s",
                  !pod->sandbox                        ? "none"
                  : sandbox_is_connected(pod->sandbox) ? "connected"
                                                       : "not connected",
                  pod->sandbox ? (int) sandbox_pid(pod->sandbox) : 0,
                  sandbox->is_lost ? ", lost" : "",
                  sandbox->is_unresponsive ? ", unresponsive" : "",
                  sandbox->needs_cleanup ? ", cleanup due" : "");
        if (sandbox->state == WORKER_RETRY_WAIT)
                dump_line(out, 3, "retries state: %s, back-off %s",
                          pod_worker_state_names[sandbox->retry_state],
                          dump_format_duration(delay, sandbox->retry_delay_usec));
        if (sandbox->cleanup)
                dump_line(out, 3, "cleanup: under way, %s",
                          sandbox->cleanup_is_whole ? "of everything" : "of the sandbox");
        dump_timer(out, 3, sandbox->state == WORKER_RETRY_WAIT ? "retry" : "the shim must answer",
                   sandbox->timer);
        dump_timer(out, 3, "network check", sandbox->network_check_timer);
        if (pod->attachment)
                network_attachment_dump(pod->attachment, out);
        else
                dump_line(out, 2, "network: of the host");
}

static void dump_pod_termination(const PodWorker *worker, FILE *out) {
        const PodTermination *termination = &worker->termination;
        uint64_t now = now_realtime_usec();
        char text[DUMP_DURATION_SIZE];

        if (termination->deletion_time > 0)
                dump_line(out, 2, "timer: grace period ends %s%s",
                          termination->deletion_time > now ? "in " : "",
                          termination->deletion_time > now
                                  ? dump_format_duration(text, termination->deletion_time - now)
                                  : "now");
        if (termination->has_grace)
                dump_line(out, 2, "deletion request: grace period %" PRId64 "s",
                          termination->grace_seconds);
        if (termination->stopping_since > 0)
                dump_line(
                        out, 2, "containers are being stopped for: %s",
                        dump_format_duration(text, now_awake_usec() - termination->stopping_since));
        dump_timer(out, 2, "the shim of the terminating pod must exit", worker->termination_timer);
}

static void dump_pod_errors(const PodWorker *worker, FILE *out) {
        if (worker->failure.reason)
                dump_line(out, 2, "failed: %s: %s", worker->failure.reason,
                          strna(worker->failure.message));
        if (worker->admission.rejection_reason)
                dump_line(out, 2, "not admitted: %s: %s", worker->admission.rejection_reason,
                          strna(worker->admission.rejection_message));
        if (worker->last_error)
                dump_line(out, 2, "last error: %s", worker->last_error);
        if (worker->edit_error)
                dump_line(out, 2, "last error of the edit: %s", worker->edit_error);
        if (worker->volumes.error)
                dump_line(out, 2, "last error of volumes: %s", worker->volumes.error);
        if (worker->resize.error)
                dump_line(out, 2, "last error of the resize: %s", worker->resize.error);
}

static void dump_pod_timers(const PodWorker *worker, FILE *out) {
        dump_timer(out, 2, "activeDeadlineSeconds ends", worker->deadline.timer);
        dump_timer(out, 2, "ephemeral storage is measured", worker->storage.timer);
        if (worker->storage.child)
                dump_line(out, 2, "ephemeral storage: is being measured");
        dump_timer(out, 2, "resize is tried again", worker->resize.timer);
        if (worker->containers.restart_all != RESTART_ALL_NONE)
                dump_line(out, 2, "restart of all containers: %s",
                          worker->containers.restart_all == RESTART_ALL_STOPPING ? "stopping"
                                                                                 : "back-off");
        dump_timer(out, 2, "back-off of the restart of all containers ends",
                   worker->containers.restart_all_timer);
}

void pod_worker_dump(const PodWorker *worker, FILE *out) {
        const PodInstance *pod = &worker->instance;
        char start[RFC3339_SIZE];

        dump_line(out, 1, "pod: %s, uid %s, state %s, %s", pod->description, pod->pod->metadata.uid,
                  pod_worker_state_names[worker->sandbox.state],
                  pod->is_desired ? "desired" : "terminating");
        dump_line(out, 2, "start time: %s", format_rfc3339(start, pod->start_time));
        dump_pod_sandbox(worker, out);
        dump_pod_termination(worker, out);
        dump_pod_errors(worker, out);
        dump_pod_timers(worker, out);
        for (size_t i = 0; i < worker->containers.n; i++)
                pod_container_dump(worker->containers.items[i], out);
}
