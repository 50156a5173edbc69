/* SPDX-License-Identifier: Apache-2.0 */
/* A restarted agent adopts a running container: the machine gets the known state of the current
 * attempt, whose number is restartCount; the end of the attempt follows as an event. */

#include "agent/pods/machine/container-machine-private.h"
#include "agent/pods/machine/exit-reason.h"

#include <assert.h>

void container_machine_adopt(ContainerMachine *c, unsigned attempt, uint64_t next_delay_usec) {
        assert(c->state == MACHINE_IDLE);
        c->attempt = attempt;
        c->attempt_is_used = true;
        c->oldest_remains = attempt;
        c->next_delay_usec = next_delay_usec;
}

void container_machine_recover(ContainerMachine *c, unsigned attempt, uint64_t now) {
        ContainerExit end = {
                .exit_code = 137, .is_unknown = true, .started_at = now, .finished_at = now
        };

        if (c->state != MACHINE_IDLE || c->attempt_is_used || c->attempt > 0)
                return;
        container_machine_adopt(c, attempt, 0);
        container_machine_on_unseen_exit(
                c, &end, "The container was running, and its exit was not observed");
}

bool container_machine_recover_exit(ContainerMachine *c, unsigned attempt, const ContainerExit *end,
                                    const char *reason) {
        if (c->state != MACHINE_IDLE || c->attempt_is_used || c->attempt > 0)
                return false;
        container_machine_adopt(c, attempt, 0);
        container_machine_record_exit(c, end, reason, end->message);
        container_machine_handle_event(c, MACHINE_EVENT_DONE);
        return true;
}

void container_machine_recover_last(ContainerMachine *c, const ContainerExit *end,
                                    const char *reason) {
        ContainerState latest = c->terminated;

        c->terminated = (ContainerState){ 0 };
        container_machine_record_exit(c, end, reason, end->message);
        container_machine_keep_as_last(c, c->attempt - 1);
        c->terminated = latest;
}

void container_machine_adopt_post_started(ContainerMachine *c) {
        c->has_post_started = true;
}

void container_machine_adopt_killed(ContainerMachine *c) {
        c->is_killed = true;
}

void container_machine_adopt_creating(ContainerMachine *c) {
        assert(c->state == MACHINE_IDLE);
        container_machine_set_state(c, MACHINE_CREATING);
}

void container_machine_adopt_last(ContainerMachine *c, unsigned attempt, const ContainerExit *end) {
        container_machine_record_exit(
                c, end, container_exit_reason(end->exit_code, end->oom_killed), end->message);
        container_machine_keep_as_last(c, attempt);
}
