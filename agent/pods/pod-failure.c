/* SPDX-License-Identifier: Apache-2.0 */
/* A pod that has failed as a whole: it used more than it may, or took longer. Its containers are
 * stopped, its sandbox ends, and nothing of it starts again until its file changes; or, where it
 * was the node that was short of something, until that is over (eviction.c). That is said on disk,
 * beside its record, because the next agent must not start it either. */

#include "agent/bundle/paths.h"
#include "agent/pods/event-recorder.h"
#include "agent/pods/pod-worker-private.h"
#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fsync-queue.h"
#include "common/log.h"
#include "common/message-ids.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>

static const char failure_file_name[] = "failure";

enum {
        FAILURE_MAX = 16 * 1024
};

int pod_worker_open_state_dir(const PodWorker *worker) {
        cleanup_free char *path = pod_state_dir(worker->context->bundle, worker->pod->metadata.uid);
        int fd;

        if (!path)
                return -ENOMEM;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* Two lines: the reason, and the sentence; of an eviction a third with the node's condition, and
 * when it was. */
static int store_pod_failure(const PodWorker *worker) {
        const PodFailure *failure = &worker->failure;
        cleanup_close int fd = pod_worker_open_state_dir(worker);
        cleanup_free char *text = NULL;
        char eviction[64] = "";

        if (fd < 0)
                return fd;
        if (failure->evicted_at > 0)
                (void) snprintf(eviction, sizeof(eviction), "%s %" PRIu64 "\n",
                                node_conditions[failure->condition].name, failure->evicted_at);
        if (asprintf(&text, "%s\n%s\n%s", failure->reason, failure->message, eviction) < 0) {
                text = NULL;
                return -ENOMEM;
        }
        fsync_queue_add(worker->context->state_sync, worker->pod->metadata.uid);
        return checksummed_write_at(fd, failure_file_name, text, 0600);
}

static int set_pod_failure(PodWorker *worker, const char *reason, const char *message) {
        char *copy = strdup(reason), *sentence = strdup(message);

        if (!copy || !sentence) {
                free(copy);
                free(sentence);
                return -ENOMEM;
        }
        worker->failure.reason = copy;
        worker->failure.message = sentence;
        return 0;
}

static void parse_eviction_line(PodWorker *worker, char *line) {
        char *time = strchr(line, ' ');
        NodeCondition condition;

        if (!time)
                return;
        *time++ = '\0';
        condition = node_condition_by_name(line);
        if (condition == N_NODE_CONDITIONS)
                return;
        worker->failure.condition = condition;
        worker->failure.evicted_at = strtoull(time, NULL, 10);
}

void pod_worker_load_failure(PodWorker *worker) {
        cleanup_close int fd = pod_worker_open_state_dir(worker);
        cleanup_free char *text = NULL;
        char *message, *eviction;
        int r = fd < 0 ? fd : checksummed_read_at(fd, failure_file_name, FAILURE_MAX, &text);

        if (r == -EBADMSG) {
                log_warning("Pod '%s': what it failed of is damaged, so it starts again",
                            worker->description);
                checksummed_set_aside_at(fd, failure_file_name);
        }
        message = r < 0 ? NULL : strchr(text, '\n');
        if (!message)
                return;
        *message++ = '\0';
        eviction = strchr(message, '\n');
        if (eviction)
                *eviction++ = '\0';
        if (set_pod_failure(worker, text, message) < 0)
                return;
        if (eviction)
                parse_eviction_line(worker, eviction);
        pod_worker_arm_termination_timer(worker, pod_worker_grace_usec(worker));
}

void pod_worker_fail(PodWorker *worker, PodEventKind kind, const char *reason, const char *message,
                     uint64_t grace_usec) {
        int r;

        if (pod_worker_has_failed(worker) || !worker->is_desired)
                return;
        r = set_pod_failure(worker, reason, message);
        if (r < 0)
                return; /* whoever looked looks again */
        log_set_message_id(MESSAGE_POD_FAILED);
        log_warning("Pod '%s' has failed, stopping it: %s: %s", worker->description, reason,
                    message);
        record_pod_event(worker, NULL, kind, reason, "%s", message);
        worker->failure.grace_usec = grace_usec;
        r = store_pod_failure(worker);
        if (r < 0)
                (void) log_error_errno(r, "Cannot keep that pod '%s' has failed",
                                       worker->description);
        pod_worker_arm_termination_timer(worker, grace_usec);
        pod_worker_mark_dirty(worker);
}

void pod_worker_shut_down(PodWorker *worker, uint64_t grace_usec) {
        if (pod_worker_has_terminated(worker) ||
            set_pod_failure(worker, "Terminated",
                            "Pod was terminated in response to imminent node shutdown.") < 0)
                return;
        worker->failure.grace_usec = MAX(grace_usec, (uint64_t) 1);
        worker->failure.is_until_reboot = true;
        pod_worker_arm_termination_timer(worker, grace_usec);
        pod_worker_mark_dirty(worker);
}

/* By a restart of all, which waits for those that are being stopped, and finds its way whether the
 * sandbox is still there or not. */
void pod_worker_cancel_shutdown(PodWorker *worker) {
        if (!worker->failure.is_until_reboot)
                return;
        pod_failure_done(&worker->failure);
        worker->termination_timer = sd_event_source_disable_unref(worker->termination_timer);
        worker->restart_all = RESTART_ALL_STOPPING;
        pod_worker_mark_dirty(worker);
}

void pod_worker_evict(PodWorker *worker, NodeCondition condition, const char *message,
                      uint64_t grace_usec) {
        if (pod_worker_has_failed(worker) || !worker->is_desired)
                return;
        worker->failure.condition = condition;
        worker->failure.evicted_at = now_realtime_usec();
        pod_worker_fail(worker, POD_EVENT_WARNING, "Evicted", message, grace_usec);
        if (!pod_worker_has_failed(worker))
                pod_failure_done(&worker->failure);
}

bool pod_worker_is_evicted(const PodWorker *worker) {
        return pod_worker_has_failed(worker) && worker->failure.evicted_at > 0;
}

bool pod_worker_has_failed(const PodWorker *worker) {
        return worker->failure.reason != NULL;
}

void pod_failure_done(PodFailure *failure) {
        free(failure->reason);
        free(failure->message);
        *failure = (PodFailure){ 0 };
}
