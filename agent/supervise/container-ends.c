/* SPDX-License-Identifier: Apache-2.0 */
/* How an attempt ends: what is known of that, and what the policy, by decide.c, makes of it. */

#include "agent/model/duration.h"
#include "agent/supervise/container-internal.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/message-ids.h"

/* Of who was killed and says that all is well. */
enum {
        KILLED_EXIT_CODE = 137,
};

void container_record_end(ContainerLife *c, const ContainerExit *end, const char *reason,
                          const char *message) {
        container_state_done(&c->ended);
        if (!message && c->is_killed)
                message = c->kill_message;
        c->ended = (ContainerState){
                .kind = STATE_TERMINATED,
                .reason = strdup(reason),
                .message = message ? strdup(message) : NULL,
                .exit_code = end->exit_code,
                .started_at = end->started_at,
                .finished_at = end->finished_at,
        };
}

/* Nothing follows, as far as this container alone is concerned. */
static bool is_last(ContainerLife *c, const RestartDecision *decision) {
        c->wants_all = decision->verdict == RESTART_ALL && !c->is_retired;
        if (c->wants_all) {
                c->retry_delay_usec = decision->delay_usec;
                c->next_delay_usec = decision->next_delay_usec;
        }
        return c->is_retired || c->wants_all || decision->verdict == RESTART_NOT;
}

/* What the runtime refuses will never run by itself: StartError and 128, as container engines say
 * it. */
void container_start_failed(ContainerLife *c, bool by_runtime, const char *reason,
                            const char *message) {
        uint64_t now = now_realtime_usec();
        ContainerExit end = { .exit_code = 128, .started_at = now, .finished_at = now };
        RestartTerms always = { .policy = RESTART_POLICY_ALWAYS };
        RestartDecision decision;

        if (by_runtime)
                container_record_end(c, &end, "StartError", message);
        if (c->runs_again) { /* what failed is not what is wanted now */
                container_handle(c, EVENT_DONE);
                return;
        }
        decision = restart_decide(by_runtime ? &c->terms : &always, end.exit_code, 0,
                                  c->next_delay_usec, c->back_off);
        c->next_delay_usec = decision.next_delay_usec;
        if (c->state != LIFE_STOPPING && is_last(c, &decision)) {
                container_handle(c, EVENT_DONE);
                return;
        }
        /* No immediate second try: what failed a moment ago fails again, and its sentence would be
         * lost. */
        c->retry_delay_usec = MAX(decision.delay_usec, c->back_off->initial_usec);
        c->next_delay_usec = back_off_next(c->retry_delay_usec, c->back_off);
        container_set_waiting(c, reason, message);
        container_handle(c, EVENT_START_FAILED);
}

void container_on_start_failed(ContainerLife *c, unsigned attempt, bool by_runtime,
                               const char *message) {
        if (attempt == c->attempt && life_facts[c->state].may_fail_to_start)
                container_start_failed(c, by_runtime,
                                       by_runtime ? "RunContainerError" : "CreateContainerError",
                                       message);
}

/* In the kubelet's words. */
static void say_back_off(ContainerLife *c, uint64_t delay_usec) {
        cleanup_free char *message = NULL;
        char delay[DURATION_SIZE];

        if (asprintf(&message, "back-off %s restarting failed container=%s pod=%s_%s(%s)",
                     duration_format(delay, delay_usec), c->spec->name, c->pod->name,
                     c->pod->namespace, c->pod->uid) < 0)
                message = NULL;
        container_set_waiting(c, "CrashLoopBackOff", message);
}

/* As after a start that failed: no immediate second try, so that its sentence is not lost. */
static void wait_after_hook(ContainerLife *c, const RestartDecision *decision) {
        cleanup_free char *failure = TAKE_PTR(c->post_start_failure);

        c->retry_delay_usec = MAX(decision->delay_usec, c->back_off->initial_usec);
        c->next_delay_usec = back_off_next(c->retry_delay_usec, c->back_off);
        container_set_waiting(c, "PostStartHookError", failure);
        container_handle(c, EVENT_WAIT);
}

/* Raises what the policy makes of an end that is recorded. 'restart' is what is to come of it at
 * once, or, without 'sits_out', in any case. */
static void decide_after_end(ContainerLife *c, const ContainerExit *end, Event restart,
                             bool sits_out) {
        uint64_t ran = end->finished_at > end->started_at ? end->finished_at - end->started_at : 0;
        /* Who was killed has failed, whatever he says. */
        int exit_code = c->is_killed && end->exit_code == 0 ? KILLED_EXIT_CODE : end->exit_code;
        RestartDecision decision =
                restart_decide(&c->terms, exit_code, ran, c->next_delay_usec, c->back_off);

        /* Who was stopped to begin by another spec has said nothing by his end. */
        if (c->runs_again || is_last(c, &decision)) {
                container_handle(c, EVENT_DONE);
                return;
        }
        c->next_delay_usec = decision.next_delay_usec;
        if (restart == EVENT_RESTART && c->post_start_failure) {
                wait_after_hook(c, &decision);
                return;
        }
        if (!sits_out || decision.verdict == RESTART_NOW) {
                container_handle(c, restart);
                return;
        }
        say_back_off(c, decision.delay_usec);
        c->retry_delay_usec = container_remaining_delay(decision.delay_usec, end->finished_at);
        container_handle(c, EVENT_WAIT);
}

void container_on_exited(ContainerLife *c, unsigned attempt, const ContainerExit *end) {
        const char *reason = exit_reason(end->exit_code, end->oom_killed);

        if (attempt != c->attempt || !life_facts[c->state].may_end)
                return;
        log_mark(MESSAGE_CONTAINER_ENDED);
        log_info("Container '%s' ended with exit code %d (%s)", c->description, end->exit_code,
                 reason);
        container_record_end(c, end, reason, end->message);
        decide_after_end(c, end, end->is_found ? EVENT_SANDBOX_GONE : EVENT_RESTART,
                         /* sits_out= */ true);
}

void container_end_unseen(ContainerLife *c, const ContainerExit *end, const char *message) {
        container_record_end(c, end, "ContainerStatusUnknown", message);
        decide_after_end(c, end, EVENT_SANDBOX_GONE, /* sits_out= */ false);
}

void container_on_sandbox_lost(ContainerLife *c, uint64_t now) {
        ContainerExit end = {
                .exit_code = 137,
                .is_unknown = true,
                .started_at = c->started_at,
                .finished_at = now,
        };

        if (c->state == LIFE_BACK_OFF || c->state == LIFE_FINISHED)
                return; /* these need no sandbox; the retry looks for one */
        if (!container_has_process(c)) {
                container_handle(c, EVENT_SANDBOX_GONE);
                return;
        }
        /* With the shim went all the remains of its attempts. */
        c->oldest_remains = c->attempt + 1;
        container_end_unseen(c, &end, "The container could not be located when its shim ended");
}
