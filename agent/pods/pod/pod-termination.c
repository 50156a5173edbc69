/* SPDX-License-Identifier: Apache-2.0 */
/* The file's format: the grace period in seconds; -1 for the pod's own. */

#include "agent/pods/pod/pod-termination.h"

#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fsync-queue.h"

#include <fcntl.h>
#include <inttypes.h>

static const char deletion_file_name[] = "deletion";

enum {
        DELETION_MAX = 1024
};

/* The kubelet's minimum grace period for a container that is stopped late. */
#define GRACE_MIN_USEC (2 * USEC_PER_SEC)

uint64_t pod_grace_period_usec(const PodTermination *termination, const PodSpec *spec,
                               uint64_t limit_usec) {
        int64_t seconds = termination->has_grace ? termination->grace_seconds
                                                 : spec->termination_grace_period_seconds.value;
        /* A grace period of 0 means a second, as in the kubelet. */
        uint64_t grace = (uint64_t) MIN(MAX(seconds, 1), INT32_MAX) * USEC_PER_SEC;

        return limit_usec > 0 ? MIN(grace, limit_usec) : grace;
}

static uint64_t termination_age_usec(const PodTermination *termination) {
        return termination->stopping_since > 0 ? now_awake_usec() - termination->stopping_since : 0;
}

uint64_t pod_remaining_grace_usec(const PodTermination *termination, uint64_t grace_usec) {
        uint64_t age = termination_age_usec(termination);

        return age < grace_usec ? grace_usec - age : MIN(GRACE_MIN_USEC, grace_usec);
}

bool pod_is_beyond_grace(const PodTermination *termination, uint64_t grace_usec) {
        return termination->stopping_since > 0 && termination_age_usec(termination) >= grace_usec;
}

static int write_deletion_request(const PodTermination *termination, const PodInstance *pod) {
        cleanup_close int fd = pod_instance_open_state_dir(pod);
        char text[32];

        if (fd < 0)
                return fd;
        (void) snprintf(text, sizeof(text), "%" PRId64 "\n",
                        termination->has_grace ? termination->grace_seconds : -1);
        return checksummed_write_at(fd, deletion_file_name, text, 0600);
}

void pod_termination_request(PodTermination *termination, const PodInstance *pod,
                             int64_t grace_seconds) {
        int r;

        if (grace_seconds >= 0) {
                termination->grace_seconds =
                        termination->has_grace ? MIN(termination->grace_seconds, grace_seconds)
                                               : grace_seconds;
                termination->has_grace = true;
        }
        r = write_deletion_request(termination, pod);
        if (r < 0)
                log_error("Cannot write the deletion request of pod '%s': %s; a restarted agent "
                          "would keep the pod",
                          pod->description, strerror(-r));
        else
                fsync_queue_add(pod->context->state_sync, pod->pod->metadata.uid);
}

/* If a request is damaged, its grace period is unknown, but the request is certain. */
int pod_termination_load(PodTermination *termination, const PodInstance *pod) {
        cleanup_close int fd = pod_instance_open_state_dir(pod);
        cleanup_free char *text = NULL;
        bool was_there =
                fd >= 0 && faccessat(fd, deletion_file_name, F_OK, AT_SYMLINK_NOFOLLOW) >= 0;
        int r = pod_instance_load_file(pod, deletion_file_name, DELETION_MAX,
                                       "its deletion request",
                                       "deleting the pod with its own grace period", &text);

        if (r < 0)
                return r;
        if (r > 0 && text[0] != '-') {
                termination->has_grace = true;
                termination->grace_seconds = strtoll(text, NULL, 10);
        }
        return was_there;
}
