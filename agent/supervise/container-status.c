/* SPDX-License-Identifier: Apache-2.0 */
/* A container's life in the words of core/v1. */

#include "agent/bundle/paths.h"
#include "agent/supervise/container-internal.h"

#include <errno.h>

static char *public_id(const ContainerLife *c, const char *uid, unsigned attempt) {
        char id[65], *text;

        container_id(uid, c->spec->name, attempt, id);
        return asprintf(&text, "mainstay://%s", id) < 0 ? NULL : text;
}

static int copy_ended(const ContainerLife *c, const ContainerState *from, const char *uid,
                      unsigned attempt, ContainerState *ret) {
        *ret = *from;
        ret->reason = from->reason ? strdup(from->reason) : NULL;
        ret->message = from->message ? strdup(from->message) : NULL;
        ret->container_id = from->kind == STATE_TERMINATED ? public_id(c, uid, attempt) : NULL;
        return 0;
}

const char *container_waiting_reason(const ContainerLife *c) {
        const char *reason = c->waiting_reason ? c->waiting_reason : life_facts[c->state].reason;

        return reason ? reason : c->idle_reason;
}

static void fill_state(const ContainerLife *c, const char *uid, ContainerState *ret) {
        switch (life_facts[c->state].kube) {
        case STATE_RUNNING:
                if (c->started_at > 0 && c->attempt_is_used) {
                        *ret = (ContainerState){ .kind = STATE_RUNNING,
                                                 .started_at = c->started_at };
                        return;
                }
                break; /* stopped while it was being created */
        case STATE_TERMINATED:
                if (c->ended.kind == STATE_TERMINATED) {
                        (void) copy_ended(c, &c->ended, uid, c->attempt, ret);
                        return;
                }
                break; /* stopped before it ever ran */
        case STATE_WAITING:
        case STATE_NONE:
                break;
        }
        ret->kind = STATE_WAITING;
        ret->reason = strdup(container_waiting_reason(c));
        ret->message = c->waiting_message ? strdup(c->waiting_message) : NULL;
}

int container_status(const ContainerLife *c, const char *uid, ContainerStatus *ret) {
        bool is_running = life_facts[c->state].kube == STATE_RUNNING;

        *ret = (ContainerStatus){ 0 };
        ret->name = strdup(c->spec->name);
        fill_state(c, uid, &ret->state);
        /* While it waits, the attempt that ended is the last state; then it is the present one. */
        if (c->ended.kind == STATE_TERMINATED && ret->state.kind != STATE_TERMINATED)
                (void) copy_ended(c, &c->ended, uid, c->attempt, &ret->last_state);
        else if (c->ended_last.kind == STATE_TERMINATED)
                (void) copy_ended(c, &c->ended_last, uid, c->attempt - 1, &ret->last_state);
        ret->ready = ret->started = is_running && ret->state.kind == STATE_RUNNING;
        ret->restart_count = c->attempt;
        if (container_has_begun(c))
                ret->container_id =
                        public_id(c, uid, c->attempt_is_used ? c->attempt : c->attempt - 1);
        return ret->name ? 0 : -ENOMEM;
}
