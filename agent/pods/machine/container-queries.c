/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of a container's state. Nothing here changes it. */

#include "agent/pods/machine/container-machine-private.h"
#include "common/clock.h"

unsigned container_machine_attempt(const ContainerMachine *c) {
        return c->attempt;
}

bool container_machine_is_running(const ContainerMachine *c) {
        return container_machine_has_process(c) && c->started_at > 0;
}

bool container_machine_is_creating(const ContainerMachine *c) {
        return c->state == MACHINE_CREATING;
}

bool container_machine_has_run(const ContainerMachine *c, unsigned attempt) {
        return c->attempt_is_used && c->attempt <= attempt;
}

bool container_machine_has_any_attempt(const ContainerMachine *c) {
        return c->attempt_is_used || c->attempt > 0;
}

uint64_t container_machine_next_delay(const ContainerMachine *c) {
        return c->next_delay_usec;
}

bool container_machine_has_process(const ContainerMachine *c) {
        return machine_states[c->state].has_process;
}

bool container_machine_is_up(const ContainerMachine *c) {
        return c->state == MACHINE_RUNNING ||
               (container_machine_is_stopping(c) && c->started_at > 0);
}

bool container_machine_is_stopping(const ContainerMachine *c) {
        return c->state == MACHINE_PRE_STOP || c->state == MACHINE_AWAITING_TURN ||
               c->state == MACHINE_STOPPING;
}

bool container_machine_holds_stop_signal(const ContainerMachine *c) {
        return c->state == MACHINE_PRE_STOP || c->state == MACHINE_AWAITING_TURN;
}

bool container_machine_is_killed(const ContainerMachine *c) {
        return c->is_killed;
}

bool container_machine_has_post_started(const ContainerMachine *c) {
        return c->has_post_started;
}

uint64_t container_machine_running_usec(const ContainerMachine *c) {
        return c->running_since.realtime > 0 ? now_boottime_usec() - c->running_since.steady : 0;
}

bool container_machine_is_in_back_off(const ContainerMachine *c) {
        return c->state == MACHINE_BACK_OFF;
}

bool container_machine_is_finished(const ContainerMachine *c) {
        return c->state == MACHINE_FINISHED;
}

bool container_machine_has_succeeded(const ContainerMachine *c) {
        return c->state == MACHINE_FINISHED && c->terminated.kind == STATE_TERMINATED &&
               c->terminated.exit_code == 0;
}

const ContainerState *container_machine_terminated_state(const ContainerMachine *c) {
        return c->state == MACHINE_FINISHED && c->terminated.kind == STATE_TERMINATED
                       ? &c->terminated
                       : NULL;
}

const ContainerState *container_machine_last_state(const ContainerMachine *c) {
        return c->last_terminated.kind == STATE_TERMINATED ? &c->last_terminated : NULL;
}

uint64_t container_machine_finished_at(const ContainerMachine *c) {
        return c->terminated.finished_at;
}

bool container_machine_has_started(const ContainerMachine *c) {
        return c->state == MACHINE_RUNNING;
}

bool container_machine_awaits_post_start(const ContainerMachine *c) {
        static const bool is_before_end_of_hook[N_MACHINE_STATES] = {
                [MACHINE_IDLE] = true,     [MACHINE_PULLING] = true,    [MACHINE_QUEUED] = true,
                [MACHINE_CREATING] = true, [MACHINE_POST_START] = true,
        };

        return c->spec->lifecycle && c->spec->lifecycle->post_start &&
               is_before_end_of_hook[c->state];
}

bool container_machine_wants_restart_all(const ContainerMachine *c, uint64_t *ret_delay_usec) {
        if (!c->wants_restart_all)
                return false;
        *ret_delay_usec =
                container_remaining_back_off(c->retry_delay_usec, c->terminated.finished_at);
        return true;
}

bool container_machine_was_interrupted(const ContainerMachine *c) {
        return c->state == MACHINE_FINISHED && c->is_interrupted;
}

bool container_machine_end_is_final(const ContainerMachine *c) {
        bool never_restarts = c->terms.policy == RESTART_POLICY_NEVER && c->terms.n_rules == 0;

        return c->state == MACHINE_FINISHED && (!c->is_interrupted || never_restarts);
}

bool container_machine_is_waiting(const ContainerMachine *c) {
        return c->state == MACHINE_IDLE;
}

bool container_machine_waits_for_image(const ContainerMachine *c) {
        return c->state == MACHINE_BACK_OFF && c->image_delay_usec > 0;
}

uint64_t container_remaining_back_off(uint64_t delay_usec, uint64_t finished_at) {
        uint64_t now = now_realtime_usec();
        uint64_t passed = now > finished_at ? now - finished_at : 0;

        return delay_usec > passed ? delay_usec - passed : 0;
}
