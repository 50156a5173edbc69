/* SPDX-License-Identifier: Apache-2.0 */
/* A person ends a pod that its manifest still wants: this life ends as that of an unwanted pod
 * does, and the next one, with the same UID, begins without what this one had gathered: restart
 * counts, back-off, what its volumes hold. That it is to end is on disk until all of it is gone,
 * for an agent that dies meanwhile must not leave half a pod to one that takes it for wanted. */

#include "agent/supervise/pod-internal.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dir-sync.h"
#include "common/log.h"
#include "common/sealed.h"

#include <fcntl.h>
#include <inttypes.h>

static const char file_name[] = "deletion";

enum {
        DELETION_MAX = 1024
};

/* The grace in seconds, or -1 for the pod's own. */
static void store(const PodLife *life) {
        cleanup_close int fd = pod_life_open_state(life);
        char text[32];
        int r = fd;

        (void) snprintf(text, sizeof(text), "%" PRId64 "\n",
                        life->has_grace ? life->grace_seconds : -1);
        if (r >= 0)
                r = sealed_write_at(fd, file_name, text, 0600);
        if (r < 0)
                (void) log_error_errno(r, "Cannot keep that pod '%s' is to end", life->description);
        else
                dir_sync_mark(life->context->disk, life->pod->metadata.uid);
}

/* Those that have been told to end, for whatever reason, get no more than the new grace. */
static void hurry(PodLife *life) {
        uint64_t end = now_realtime_usec() + pod_life_grace_usec(life);

        life->deletion_time = MIN(life->deletion_time, end);
        life->ending_since = now_boottime_usec();
        for (size_t i = 0; i < life->n_containers; i++) {
                PodContainer *c = &life->containers[i];

                if (container_is_stopping(c->life))
                        pod_container_hurry(c);
        }
}

void pod_life_delete(PodLife *life, int64_t grace_seconds) {
        if (grace_seconds >= 0) {
                life->grace_seconds =
                        life->has_grace ? MIN(life->grace_seconds, grace_seconds) : grace_seconds;
                life->has_grace = true;
        }
        store(life);
        pod_life_unwant(life);
        if (grace_seconds >= 0 && pod_life_is_ready(life))
                hurry(life);
}

void pod_life_load_deletion(PodLife *life) {
        cleanup_close int fd = pod_life_open_state(life);
        cleanup_free char *text = NULL;
        int r = fd < 0 ? fd : sealed_read_at(fd, file_name, DELETION_MAX, &text);

        if (r == -EBADMSG) { /* that it is to end is sure, its grace is not */
                log_warning("Pod '%s': how it was to end is damaged, so it has its own grace",
                            life->description);
                sealed_set_aside_at(fd, file_name);
        }
        if (r < 0 && r != -EBADMSG)
                return;
        if (text && text[0] != '-') {
                life->has_grace = true;
                life->grace_seconds = strtoll(text, NULL, 10);
        }
        pod_life_unwant(life);
}

int pod_begin_anew(Pod *pod) {
        StringMap *annotations = &pod->metadata.annotations;
        char now[RFC3339_SIZE];

        for (size_t i = 0; i < annotations->n; i++) {
                char *value;

                if (!streq(annotations->items[i].key, pod_seen_annotation))
                        continue;
                value = strdup(format_rfc3339_nano(now, now_realtime_usec()));
                if (!value)
                        return -ENOMEM;
                free(annotations->items[i].value);
                annotations->items[i].value = value;
        }
        return 0;
}
