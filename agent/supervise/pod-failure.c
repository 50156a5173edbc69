/* SPDX-License-Identifier: Apache-2.0 */
/* A pod that has failed as a whole: it used more than it may, or took longer. Its containers are
 * stopped, its sandbox ends, and nothing of it starts again until its file changes; or, where it
 * was the node that was short of something, until that is over (eviction.c). That is said on disk,
 * beside its record, because the next agent must not start it either. */

#include "agent/bundle/paths.h"
#include "agent/supervise/pod-internal.h"
#include "agent/supervise/tell.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dir-sync.h"
#include "common/log.h"
#include "common/message-ids.h"
#include "common/sealed.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>

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

/* Two lines: the reason, and the sentence; of an eviction a third with the node's condition, and
 * when it was. */
static int store(const PodLife *life) {
        const PodFailure *failure = &life->failure;
        cleanup_close int fd = pod_life_open_state(life);
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
        dir_sync_mark(life->context->disk, life->pod->metadata.uid);
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

static void read_eviction(PodLife *life, char *line) {
        char *time = strchr(line, ' ');
        NodeCondition condition;

        if (!time)
                return;
        *time++ = '\0';
        condition = node_condition_by_name(line);
        if (condition == N_NODE_CONDITIONS)
                return;
        life->failure.condition = condition;
        life->failure.evicted_at = strtoull(time, NULL, 10);
}

void pod_life_load_failure(PodLife *life) {
        cleanup_close int fd = pod_life_open_state(life);
        cleanup_free char *text = NULL;
        char *message, *eviction;
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
        eviction = strchr(message, '\n');
        if (eviction)
                *eviction++ = '\0';
        if (set_failure(life, text, message) < 0)
                return;
        if (eviction)
                read_eviction(life, eviction);
        pod_life_limit_end(life, pod_life_grace_usec(life));
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
        if (pod_life_has_ended(life) ||
            set_failure(life, "Terminated",
                        "Pod was terminated in response to imminent node shutdown.") < 0)
                return;
        life->failure.grace_usec = MAX(grace_usec, (uint64_t) 1);
        life->failure.is_passing = true;
        pod_life_limit_end(life, grace_usec);
        pod_life_mark(life);
}

/* By a restart of all, which waits for those that are being stopped, and finds its way whether the
 * sandbox is still there or not. */
void pod_life_go_on(PodLife *life) {
        if (!life->failure.is_passing)
                return;
        pod_failure_done(&life->failure);
        life->end_timer = sd_event_source_disable_unref(life->end_timer);
        life->all_restart = ALL_RESTART_ENDING;
        pod_life_mark(life);
}

void pod_life_evict(PodLife *life, NodeCondition condition, const char *message,
                    uint64_t grace_usec) {
        if (pod_life_has_failed(life) || !life->is_wanted)
                return;
        life->failure.condition = condition;
        life->failure.evicted_at = now_realtime_usec();
        pod_life_fail(life, POD_EVENT_WARNING, "Evicted", message, grace_usec);
        if (!pod_life_has_failed(life))
                pod_failure_done(&life->failure);
}

bool pod_life_is_evicted(const PodLife *life) {
        return pod_life_has_failed(life) && life->failure.evicted_at > 0;
}

bool pod_life_has_failed(const PodLife *life) {
        return life->failure.reason != NULL;
}

void pod_failure_done(PodFailure *failure) {
        free(failure->reason);
        free(failure->message);
        *failure = (PodFailure){ 0 };
}
