/* SPDX-License-Identifier: Apache-2.0 */
/* A pod that has failed as a whole: it used more than it may, or took longer. Its containers are
 * stopped, its sandbox ends, and nothing of it starts again until its file changes. That is said on
 * disk, beside its record, because the next agent must not start it either. */

#include "agent/bundle/paths.h"
#include "agent/supervise/pod-internal.h"
#include "agent/supervise/tell.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/message-ids.h"
#include "common/sealed.h"

#include <fcntl.h>

static const char file_name[] = "failure";

enum {
        FAILURE_MAX = 16 * 1024
};

int pod_life_open_state(const PodLife *life) {
        cleanup_free char *path = pod_state_dir(life->context->bundle, life->pod->metadata.uid);
        int fd;

        if (!path)
                return -ENOMEM;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* Two lines: the reason, and the sentence. */
static int store(const PodLife *life) {
        cleanup_close int fd = pod_life_open_state(life);
        cleanup_free char *text = NULL;

        if (fd < 0)
                return fd;
        if (asprintf(&text, "%s\n%s\n", life->failure.reason, life->failure.message) < 0) {
                text = NULL;
                return -ENOMEM;
        }
        return sealed_write_at(fd, file_name, text, 0600);
}

static int set_failure(PodLife *life, const char *reason, const char *message) {
        char *copy = strdup(reason), *sentence = strdup(message);

        if (!copy || !sentence) {
                free(copy);
                free(sentence);
                return -ENOMEM;
        }
        life->failure.reason = copy;
        life->failure.message = sentence;
        return 0;
}

void pod_life_load_failure(PodLife *life) {
        cleanup_close int fd = pod_life_open_state(life);
        cleanup_free char *text = NULL;
        char *message;
        int r = fd < 0 ? fd : sealed_read_at(fd, file_name, FAILURE_MAX, &text);

        if (r == -EBADMSG) {
                log_warning("Pod '%s': what it failed of is damaged, so it starts again",
                            life->description);
                sealed_set_aside_at(fd, file_name);
        }
        message = r < 0 ? NULL : strchr(text, '\n');
        if (!message)
                return;
        *message++ = '\0';
        message[strcspn(message, "\n")] = '\0';
        (void) set_failure(life, text, message);
}

void pod_life_fail(PodLife *life, PodEventKind kind, const char *reason, const char *message,
                   uint64_t grace_usec) {
        int r;

        if (pod_life_has_failed(life) || !life->is_wanted)
                return;
        r = set_failure(life, reason, message);
        if (r < 0)
                return; /* whoever looked looks again */
        log_mark(MESSAGE_POD_FAILED);
        log_warning("Pod '%s' has failed, stopping it: %s: %s", life->description, reason, message);
        event_tell(life, NULL, kind, reason, "%s", message);
        life->failure.grace_usec = grace_usec;
        r = store(life);
        if (r < 0)
                (void) log_error_errno(r, "Cannot keep that pod '%s' has failed",
                                       life->description);
        pod_life_limit_end(life, grace_usec);
        pod_life_mark(life);
}

void pod_life_shut_down(PodLife *life, uint64_t grace_usec) {
        if (pod_life_has_failed(life) || !life->is_wanted ||
            set_failure(life, "Terminated",
                        "Pod was terminated in response to imminent node shutdown.") < 0)
                return;
        life->failure.grace_usec = MAX(grace_usec, (uint64_t) 1);
        life->failure.is_passing = true;
        pod_life_limit_end(life, grace_usec);
        pod_life_mark(life);
}

bool pod_life_has_process(const PodLife *life) {
        for (size_t i = 0; i < life->n_containers; i++)
                if (container_has_process(life->containers[i].life))
                        return true;
        return false;
}

bool pod_life_has_failed(const PodLife *life) {
        return life->failure.reason != NULL;
}

void pod_failure_done(PodFailure *failure) {
        free(failure->reason);
        free(failure->message);
        *failure = (PodFailure){ 0 };
}
