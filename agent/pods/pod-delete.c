/* SPDX-License-Identifier: Apache-2.0 */
/* A person ends a pod that its manifest still wants: this life ends as that of an unwanted pod
 * does, and the next one, with the same UID, begins without what this one had gathered: restart
 * counts, back-off, what its volumes hold. That it is to end is on disk until all of it is gone,
 * for an agent that dies meanwhile must not leave half a pod to one that takes it for wanted. */

#include "agent/pods/pod-worker-private.h"
#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fsync-queue.h"
#include "common/log.h"

#include <fcntl.h>
#include <inttypes.h>

static const char deletion_file_name[] = "deletion";

enum {
        DELETION_MAX = 1024
};

/* The grace in seconds, or -1 for the pod's own. */
static void store_deletion(const PodWorker *worker) {
        cleanup_close int fd = pod_worker_open_state_dir(worker);
        char text[32];
        int r = fd;

        (void) snprintf(text, sizeof(text), "%" PRId64 "\n",
                        worker->has_grace ? worker->grace_seconds : -1);
        if (r >= 0)
                r = checksummed_write_at(fd, deletion_file_name, text, 0600);
        if (r < 0)
                (void) log_error_errno(r, "Cannot keep that pod '%s' is to end",
                                       worker->description);
        else
                fsync_queue_add(worker->context->state_sync, worker->pod->metadata.uid);
}

/* Those that have been told to end, for whatever reason, get no more than the new grace. */
static void shorten_container_graces(PodWorker *worker) {
        uint64_t end = now_realtime_usec() + pod_worker_grace_usec(worker);

        worker->deletion_time = MIN(worker->deletion_time, end);
        worker->stopping_since = now_boottime_usec();
        for (size_t i = 0; i < worker->n_containers; i++) {
                PodContainer *c = &worker->containers[i];

                if (container_machine_is_stopping(c->machine))
                        pod_container_shorten_grace(c);
        }
}

void pod_worker_delete(PodWorker *worker, int64_t grace_seconds, const char *reason) {
        if (grace_seconds >= 0) {
                worker->grace_seconds = worker->has_grace
                                                ? MIN(worker->grace_seconds, grace_seconds)
                                                : grace_seconds;
                worker->has_grace = true;
        }
        store_deletion(worker);
        pod_worker_terminate(worker, reason);
        if (grace_seconds >= 0 && pod_worker_sandbox_is_ready(worker))
                shorten_container_graces(worker);
}

void pod_worker_load_deletion(PodWorker *worker) {
        cleanup_close int fd = pod_worker_open_state_dir(worker);
        cleanup_free char *text = NULL;
        int r = fd < 0 ? fd : checksummed_read_at(fd, deletion_file_name, DELETION_MAX, &text);

        if (r == -EBADMSG) { /* that it is to end is sure, its grace is not */
                log_warning("Pod '%s': how it was to end is damaged, so it has its own grace",
                            worker->description);
                checksummed_set_aside_at(fd, deletion_file_name);
        }
        if (r < 0 && r != -EBADMSG)
                return;
        if (text && text[0] != '-') {
                worker->has_grace = true;
                worker->grace_seconds = strtoll(text, NULL, 10);
        }
        pod_worker_terminate(worker, NULL);
}

int pod_reset_config_seen(Pod *pod) {
        StringMap *annotations = &pod->metadata.annotations;
        char now[RFC3339_SIZE];

        for (size_t i = 0; i < annotations->n; i++) {
                char *value;

                if (!streq(annotations->items[i].key, config_seen_annotation))
                        continue;
                value = strdup(format_rfc3339_nano(now, now_realtime_usec()));
                if (!value)
                        return -ENOMEM;
                free(annotations->items[i].value);
                annotations->items[i].value = value;
        }
        return 0;
}
