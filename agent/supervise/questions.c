/* SPDX-License-Identifier: Apache-2.0 */

/* Which pods there are, how they are, and where they come from. */

#include "agent/supervise/slot.h"
#include "common/cleanup.h"

/* Compares the slot's "<namespace>/<name>/<uid>" with one that is told. */
static bool is_after(const Slot *slot, const char *after) {
        size_t length = strlen(slot->key);
        int order = strncmp(slot->key, after, length);

        return order > 0 ||
               (order == 0 && strcmp(pod_life_pod(slot->life)->metadata.uid, after + length) > 0);
}

int supervisor_next(Supervisor *s, const char *after, const Pod **ret_pod, PodStatus *ret_status) {
        for (Slot *slot = s->slots; slot; slot = slot->following) {
                int r;

                if (!slot->life || (after && !is_after(slot, after)))
                        continue;
                r = pod_life_status(slot->life, ret_status);
                if (r < 0)
                        return r;
                *ret_pod = pod_life_pod(slot->life);
                return 1;
        }
        return 0;
}

int supervisor_each(Supervisor *s, int (*each)(const Pod *, const PodStatus *, void *),
                    void *userdata) {
        for (Slot *slot = s->slots; slot; slot = slot->following) {
                cleanup_with(pod_status_done) PodStatus status = { 0 };
                int r = slot->life ? pod_life_status(slot->life, &status) : 0;

                if (r >= 0 && slot->life)
                        r = each(pod_life_pod(slot->life), &status, userdata);
                if (r < 0)
                        return r;
        }
        return 0;
}

int supervisor_status(Supervisor *s, const char *uid, const Pod **ret_pod, PodStatus *ret_status) {
        for (Slot *slot = s->slots; slot; slot = slot->following) {
                int r;

                if (!slot->life || !streq(pod_life_pod(slot->life)->metadata.uid, uid))
                        continue;
                r = pod_life_status(slot->life, ret_status);
                if (r >= 0)
                        *ret_pod = pod_life_pod(slot->life);
                return r;
        }
        return -ENOENT;
}

const char *supervisor_origin(const Supervisor *s, const char *uid) {
        for (const Slot *slot = s->slots; slot; slot = slot->following)
                if (slot->life && streq(pod_life_pod(slot->life)->metadata.uid, uid))
                        return slot->file;
        return NULL;
}
