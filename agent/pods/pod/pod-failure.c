/* SPDX-License-Identifier: Apache-2.0 */
/* The format: a line with the reason, a line with the message; for an eviction a line with the
 * node's condition and the time; if the grace period is limited, "grace" and the limit in
 * microseconds.
 */

#include "agent/pods/pod/pod-failure.h"

#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/fsync-queue.h"
#include "common/text.h"

#include <inttypes.h>

static const char failure_file_name[] = "failure";
static const char grace_word[] = "grace ";

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
        char eviction[64] = "", grace[32] = "";

        if (fd < 0)
                return fd;
        if (failure->evicted_at > 0)
                (void) snprintf(eviction, sizeof(eviction), "%s %" PRIu64 "\n",
                                node_conditions[failure->condition].name, failure->evicted_at);
        if (failure->grace_usec > 0)
                (void) snprintf(grace, sizeof(grace), "%s%" PRIu64 "\n", grace_word,
                                failure->grace_usec);
        text = text_format("%s\n%s\n%s%s", failure->reason, failure->message, eviction, grace);
        if (!text)
                return -ENOMEM;
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

static void parse_failure_lines(PodFailure *failure, char *lines) {
        char *rest = lines, *line;

        while ((line = strsep(&rest, "\n")))
                if (strncmp(line, grace_word, strlen(grace_word)) == 0)
                        failure->grace_usec = strtoull(line + strlen(grace_word), NULL, 10);
                else
                        parse_eviction_line(failure, line);
}

int pod_failure_load(PodFailure *failure, const PodInstance *pod) {
        cleanup_free char *text = NULL;
        char *message, *lines;
        int r = pod_instance_load_file(pod, failure_file_name, FAILURE_MAX,
                                       "the record of its failure", "starting the pod", &text);

        if (r <= 0)
                return r;
        message = strchr(text, '\n');
        if (!message)
                return 0;
        *message++ = '\0';
        lines = strchr(message, '\n');
        if (lines)
                *lines++ = '\0';
        r = pod_failure_set(failure, text, message);
        if (r >= 0 && lines)
                parse_failure_lines(failure, lines);
        return r;
}

void pod_failure_done(PodFailure *failure) {
        free(failure->reason);
        free(failure->message);
        *failure = (PodFailure){ 0 };
}
