/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an attempt: it is recorded as terminated, and the restart policy (restart-policy.h)
 * decides whether the container restarts, enters CrashLoopBackOff or ends. */

#include "agent/model/duration.h"
#include "agent/pods/machine/container-machine-private.h"
#include "agent/pods/machine/exit-reason.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/message-ids.h"
#include "common/text.h"

enum {
        KILLED_EXIT_CODE = 137, /* used if a killed container exits with 0 */
};

void container_machine_record_exit(ContainerMachine *c, const ContainerExit *end,
                                   const char *reason, const char *message) {
        container_state_done(&c->terminated);
        if (!message && c->is_killed)
                message = c->kill_message;
        c->terminated = (ContainerState){
                .kind = STATE_TERMINATED,
                .reason = strdup(reason),
                .message = message ? strdup(message) : NULL,
                .exit_code = end->exit_code,
                .started_at = end->started_at,
                .finished_at = end->finished_at,
        };
}

/* Whether no attempt follows, considering only this container. */
static bool is_last_attempt(ContainerMachine *c, const RestartDecision *decision) {
        c->wants_restart_all = decision->verdict == RESTART_ALL && !c->is_restart_disabled;
        if (c->wants_restart_all) {
                c->retry_delay_usec = decision->delay_usec;
                c->next_delay_usec = decision->next_delay_usec;
        }
        if (decision->verdict == RESTART_NOT)
                return true;
        c->is_interrupted = c->is_restart_disabled || c->wants_restart_all;
        return c->is_interrupted;
}

/* A container that the runtime refuses never runs: StartError and 128, as in container engines. */
void container_machine_start_failed(ContainerMachine *c, bool by_runtime, const char *reason,
                                    const char *message) {
        uint64_t now = now_realtime_usec();
        ContainerExit end = { .exit_code = 128, .started_at = now, .finished_at = now };
        ContainerRestartPolicy always = { .policy = RESTART_POLICY_ALWAYS };
        RestartDecision decision;

        if (by_runtime)
                container_machine_record_exit(c, &end, "StartError", message);
        if (c->restarts_when_stopped) { /* the spec that failed has been replaced */
                container_machine_handle_event(c, MACHINE_EVENT_DONE);
                return;
        }
        decision = decide_restart(by_runtime ? &c->terms : &always, end.exit_code, 0,
                                  c->next_delay_usec, c->back_off);
        c->next_delay_usec = decision.next_delay_usec;
        if (!container_machine_is_stopping(c) && is_last_attempt(c, &decision)) {
                container_machine_handle_event(c, MACHINE_EVENT_DONE);
                return;
        }
        /* There is no immediate retry, because it would fail again and the message would be lost.
         */
        c->retry_delay_usec = MAX(decision.delay_usec, c->back_off->initial_usec);
        c->next_delay_usec = back_off_next_delay(c->retry_delay_usec, c->back_off);
        container_machine_set_waiting(c, reason, message);
        container_machine_handle_event(c, MACHINE_EVENT_START_FAILED);
}

void container_machine_on_start_failed(ContainerMachine *c, unsigned attempt, bool by_runtime,
                                       const char *message) {
        if (attempt != c->attempt || !machine_states[c->state].may_fail_to_start)
                return;
        /* Otherwise no container was created, and the next attempt reuses this number. */
        c->attempt_is_used = by_runtime;
        container_machine_start_failed(
                c, by_runtime, by_runtime ? "RunContainerError" : "CreateContainerError", message);
}

/* The kubelet's message. */
static void set_crash_loop_message(ContainerMachine *c, uint64_t delay_usec) {
        char delay[DURATION_SIZE];
        cleanup_free char *message =
                text_format("back-off %s restarting failed container=%s pod=%s_%s(%s)",
                            duration_format(delay, delay_usec), c->spec->name, c->pod->name,
                            c->pod->namespace, c->pod->uid);

        container_machine_set_waiting(c, "CrashLoopBackOff", message);
}

/* As after a failed start, there is no immediate retry, so that the message is not lost. */
static void back_off_after_hook_failure(ContainerMachine *c, const RestartDecision *decision) {
        cleanup_free char *failure = TAKE_PTR(c->post_start_failure);

        c->retry_delay_usec = MAX(decision->delay_usec, c->back_off->initial_usec);
        c->next_delay_usec = back_off_next_delay(c->retry_delay_usec, c->back_off);
        container_machine_set_waiting(c, "PostStartHookError", failure);
        container_machine_handle_event(c, MACHINE_EVENT_BACK_OFF);
}

/* The clock may have been set in the meantime. */
static uint64_t time_that_attempt_ran(const ContainerMachine *c, const ContainerExit *end) {
        uint64_t ran = end->finished_at > end->started_at ? end->finished_at - end->started_at : 0;
        bool was_seen = c->running_since.realtime == end->started_at && end->started_at > 0;

        return was_seen && !end->is_found ? MIN(ran, now_boottime_usec() - c->running_since.steady)
                                          : ran;
}

/* Raises the event that follows from the recorded end. 'restart' is the event for a restart without
 * delay or, unless 'waits_back_off' is set, for any restart. */
static void apply_restart_policy(ContainerMachine *c, const ContainerExit *end,
                                 ContainerMachineEvent restart, bool waits_back_off) {
        uint64_t ran = time_that_attempt_ran(c, end);
        /* A killed container has failed, regardless of its exit code. */
        int exit_code = c->is_killed && end->exit_code == 0 ? KILLED_EXIT_CODE : end->exit_code;
        RestartDecision decision =
                decide_restart(&c->terms, exit_code, ran, c->next_delay_usec, c->back_off);

        /* If a container was stopped to run with a new spec, its exit code has no meaning. */
        if (c->restarts_when_stopped || is_last_attempt(c, &decision)) {
                container_machine_handle_event(c, MACHINE_EVENT_DONE);
                return;
        }
        c->next_delay_usec = decision.next_delay_usec;
        if (restart == MACHINE_EVENT_RESTART && c->post_start_failure) {
                back_off_after_hook_failure(c, &decision);
                return;
        }
        if (!waits_back_off || decision.verdict == RESTART_NOW) {
                container_machine_handle_event(c, restart);
                return;
        }
        set_crash_loop_message(c, decision.delay_usec);
        c->retry_delay_usec = container_remaining_back_off(decision.delay_usec, end->finished_at);
        container_machine_handle_event(c, MACHINE_EVENT_BACK_OFF);
}

void container_machine_on_exited(ContainerMachine *c, unsigned attempt, const ContainerExit *end) {
        const char *reason = container_exit_reason(end->exit_code, end->oom_killed);

        if (attempt != c->attempt || !machine_states[c->state].may_end)
                return;
        log_set_message_id(MESSAGE_CONTAINER_EXITED);
        log_info("Container '%s' exited with code %d (%s)", c->description, end->exit_code, reason);
        container_machine_record_exit(c, end, reason, end->message);
        apply_restart_policy(c, end,
                             end->is_found ? MACHINE_EVENT_SANDBOX_LOST : MACHINE_EVENT_RESTART,
                             /* waits_back_off= */ true);
}

void container_machine_on_unseen_exit(ContainerMachine *c, const ContainerExit *end,
                                      const char *message) {
        container_machine_record_exit(c, end, "ContainerStatusUnknown", message);
        apply_restart_policy(c, end, MACHINE_EVENT_SANDBOX_LOST, /* waits_back_off= */ false);
}

void container_machine_on_sandbox_lost(ContainerMachine *c, uint64_t now) {
        ContainerExit end = {
                .exit_code = 137,
                .is_unknown = true,
                .started_at = c->started_at,
                .finished_at = now,
        };

        if (c->state == MACHINE_BACK_OFF || c->state == MACHINE_FINISHED)
                return; /* these states do not need a sandbox; the retry checks for one */
        if (!container_machine_has_process(c)) {
                container_machine_handle_event(c, MACHINE_EVENT_SANDBOX_LOST);
                return;
        }
        /* The attempts' remains disappeared with the shim; the logs of earlier ones are removed. */
        c->oldest_remains = c->attempt;
        container_machine_on_unseen_exit(c, &end,
                                         "The container could not be located when its shim exited");
}
