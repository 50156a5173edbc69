/* SPDX-License-Identifier: Apache-2.0 */
/* A container's status (v1.ContainerStatus), as far as its state machine determines it;
 * restartCount is the attempt's number. */

#include "agent/bundle/pod-paths.h"
#include "agent/pods/machine/container-machine-private.h"
#include "common/text.h"

#include <errno.h>

static char *format_container_id(const ContainerMachine *c, const char *uid, unsigned attempt) {
        char id[65];

        container_id(uid, c->spec->name, attempt, id);
        return text_format("mainstay://%s", id);
}

static int copy_terminated_state(const ContainerMachine *c, const ContainerState *from,
                                 const char *uid, unsigned attempt, ContainerState *ret) {
        *ret = *from;
        ret->reason = from->reason ? strdup(from->reason) : NULL;
        ret->message = from->message ? strdup(from->message) : NULL;
        ret->container_id =
                from->kind == STATE_TERMINATED ? format_container_id(c, uid, attempt) : NULL;
        return 0;
}

const char *container_machine_waiting_reason(const ContainerMachine *c) {
        const char *reason =
                c->waiting_reason ? c->waiting_reason : machine_states[c->state].reason;

        return reason ? reason : c->default_waiting_reason;
}

static void fill_container_state(const ContainerMachine *c, const char *uid, ContainerState *ret) {
        switch (machine_states[c->state].api_state) {
        case STATE_RUNNING:
                if (c->started_at > 0 && c->attempt_is_used) {
                        *ret = (ContainerState){ .kind = STATE_RUNNING,
                                                 .started_at = c->started_at };
                        return;
                }
                break; /* stopped while it was being created */
        case STATE_TERMINATED:
                if (c->terminated.kind == STATE_TERMINATED) {
                        (void) copy_terminated_state(c, &c->terminated, uid, c->attempt, ret);
                        return;
                }
                break; /* stopped before it ever ran */
        case STATE_WAITING:
        case STATE_NONE:
                break;
        }
        ret->kind = STATE_WAITING;
        ret->reason = strdup(container_machine_waiting_reason(c));
        ret->message = c->waiting_message ? strdup(c->waiting_message) : NULL;
}

/* While the container waits, the attempt that has ended is the last state; otherwise it is the
 * current one. */
static const ContainerState *find_last_state(const ContainerMachine *c, unsigned *ret_attempt) {
        bool is_terminated = machine_states[c->state].api_state == STATE_TERMINATED;

        *ret_attempt = c->attempt;
        if (c->terminated.kind == STATE_TERMINATED && !is_terminated)
                return &c->terminated;
        *ret_attempt = c->last_attempt;
        return c->last_terminated.kind == STATE_TERMINATED ? &c->last_terminated : NULL;
}

bool container_machine_last_attempt(const ContainerMachine *c, unsigned *ret_attempt) {
        return find_last_state(c, ret_attempt) != NULL;
}

int container_machine_status(const ContainerMachine *c, const char *uid, ContainerStatus *ret) {
        bool is_running = machine_states[c->state].api_state == STATE_RUNNING;
        const ContainerState *last;
        unsigned last_attempt;

        *ret = (ContainerStatus){ 0 };
        ret->name = strdup(c->spec->name);
        fill_container_state(c, uid, &ret->state);
        last = find_last_state(c, &last_attempt);
        if (last)
                (void) copy_terminated_state(c, last, uid, last_attempt, &ret->last_state);
        ret->ready = ret->started = is_running && ret->state.kind == STATE_RUNNING;
        ret->restart_count = c->attempt;
        if (container_machine_has_any_attempt(c))
                ret->container_id = format_container_id(
                        c, uid, c->attempt_is_used ? c->attempt : c->attempt - 1);
        return ret->name ? 0 : -ENOMEM;
}
