/* SPDX-License-Identifier: Apache-2.0 */
/* A person ends a pod that its manifest still wants: this life ends as that of an unwanted pod
 * does, and the next one, with the same UID, begins without what this one had gathered: restart
 * counts, back-off, what its volumes hold. */

#include "agent/supervise/pod-internal.h"
#include "common/cleanup.h"
#include "common/clock.h"

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
        pod_life_unwant(life);
        if (grace_seconds >= 0 && pod_life_is_ready(life))
                hurry(life);
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
