/* SPDX-License-Identifier: Apache-2.0 */
/* The format: a line with the reason, a line with the message; for an eviction a third with the
 * node's condition and the time. */

#include "agent/pods/pod-failure.h"

#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/fsync-queue.h"

#include <inttypes.h>

static const char failure_file_name[] = "failure";

enum {
        FAILURE_MAX = 16 * 1024
};

int pod_failure_set(PodFailure *failure, const char *reason, const char *message) {
        char *reason_copy = strdup(reason), *message_copy = strdup(message);

        if (!reason_copy || !message_copy) {
                free(reason_copy);
                free(message_copy);
                return -ENOMEM;
        }
        failure->reason = reason_copy;
        failure->message = message_copy;
        return 0;
}

static int write_pod_failure(const PodFailure *failure, const PodInstance *pod) {
        cleanup_close int fd = pod_instance_open_state_dir(pod);
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
        fsync_queue_add(pod->context->state_sync, pod->pod->metadata.uid);
        return checksummed_write_at(fd, failure_file_name, text, 0600);
}

void pod_failure_store(const PodFailure *failure, const PodInstance *pod) {
        int r = write_pod_failure(failure, pod);

        if (r < 0)
                log_error("Cannot write the failure of pod '%s': %s; a restarted agent would start "
                          "it",
                          pod->description, strerror(-r));
}

static void parse_eviction_line(PodFailure *failure, char *line) {
        char *time = strchr(line, ' ');
        NodeCondition condition;

        if (!time)
                return;
        *time++ = '\0';
        condition = node_condition_by_name(line);
        if (condition == N_NODE_CONDITIONS)
                return;
        failure->condition = condition;
        failure->evicted_at = strtoull(time, NULL, 10);
}

int pod_failure_load(PodFailure *failure, const PodInstance *pod) {
        cleanup_free char *text = NULL;
        char *message, *eviction;
        int r = pod_instance_load_file(pod, failure_file_name, FAILURE_MAX,
                                       "the record of its failure", "starting the pod", &text);

        if (r <= 0)
                return r;
        message = strchr(text, '\n');
        if (!message)
                return 0;
        *message++ = '\0';
        eviction = strchr(message, '\n');
        if (eviction)
                *eviction++ = '\0';
        r = pod_failure_set(failure, text, message);
        if (r >= 0 && eviction)
                parse_eviction_line(failure, eviction);
        return r;
}

void pod_failure_done(PodFailure *failure) {
        free(failure->reason);
        free(failure->message);
        *failure = (PodFailure){ 0 };
}
