/* SPDX-License-Identifier: Apache-2.0 */
/* The machine. Facts about states stand in one table, legal moves in a second; decisions are in
 * decide.c; effects are the enter_…() functions; set_state() alone writes the state.
 *
 * An attempt is one run of the container: its number is the restart count, the name of its log and
 * part of its ID. A number is used up when the shim was asked to run it, whatever came of it. */

#include "agent/model/duration.h"
#include "agent/supervise/container-internal.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/log.h"
#include "common/message-ids.h"

#include <assert.h>

typedef enum Event {
        EVENT_START,
        EVENT_IMAGE_READY,
        EVENT_IMAGE_FAILED,
        EVENT_TURN,
        EVENT_STARTED,
        EVENT_HOOK_DONE,
        EVENT_START_FAILED,
        EVENT_RESTART,
        EVENT_WAIT,
        EVENT_DONE,
        EVENT_RETRY,
        EVENT_SANDBOX_GONE,
        EVENT_KILL,
        EVENT_STOP,
        EVENT_AGAIN,
        EVENT_EDIT,
        N_EVENTS,
} Event;

/* Of who was killed and says that all is well. */
enum {
        KILLED_EXIT_CODE = 137,
};

/* clang-format off */
const LifeFacts life_facts[N_LIFE_STATES] = {
        [LIFE_IDLE]       = { "idle",       STATE_WAITING,    NULL,                false, false, false, false, false, true,  false },
        [LIFE_PULLING]    = { "pulling",    STATE_WAITING,    NULL,                false, true,  false, false, false, false, false },
        [LIFE_QUEUED]     = { "queued",     STATE_WAITING,    NULL,                false, false, true,  false, false, false, false },
        [LIFE_CREATING]   = { "creating",   STATE_WAITING,    NULL,                true,  false, true,  false, false, true,  false },
        [LIFE_POST_START] = { "post-start", STATE_WAITING,    NULL,                true,  false, false, false, true,  false, true },
        [LIFE_UP]         = { "running",    STATE_RUNNING,    NULL,                true,  false, false, false, false, false, true },
        [LIFE_PRE_STOP]   = { "pre-stop",   STATE_RUNNING,    NULL,                true,  false, false, false, true,  false, true },
        [LIFE_STOPPING]   = { "stopping",   STATE_RUNNING,    NULL,                true,  false, false, false, false, true,  true },
        [LIFE_BACK_OFF]   = { "back-off",   STATE_WAITING,    "CrashLoopBackOff",  false, false, false, true,  false, false, false },
        [LIFE_FINISHED]   = { "finished",   STATE_TERMINATED, NULL,                false, false, false, false, false, false, false },
};

static const char *const event_names[N_EVENTS] = {
        [EVENT_START]        = "start",
        [EVENT_IMAGE_READY]  = "image ready",
        [EVENT_IMAGE_FAILED] = "image failed",
        [EVENT_TURN]         = "turn",
        [EVENT_STARTED]      = "started",
        [EVENT_HOOK_DONE]    = "hook done",
        [EVENT_START_FAILED] = "start failed",
        [EVENT_RESTART]      = "ended, again",
        [EVENT_WAIT]         = "ended, later",
        [EVENT_DONE]         = "ended, done",
        [EVENT_RETRY]        = "retry",
        [EVENT_SANDBOX_GONE] = "sandbox gone",
        [EVENT_KILL]         = "kill",
        [EVENT_STOP]         = "stop",
        [EVENT_AGAIN]        = "again",
        [EVENT_EDIT]         = "edited",
};
/* clang-format on */

static void handle(ContainerLife *c, Event event);

static void set_text(char **text, const char *value) {
        free(*text);
        *text = value ? strdup(value) : NULL;
}

static void enter_idle(ContainerLife *c) {
}

static void enter_pulling(ContainerLife *c) {
        c->is_killed = false;
        c->has_post_started = false;
        set_text(&c->post_start_failure, NULL);
        if (c->attempt_is_used) {
                c->attempt++;
                c->attempt_is_used = false;
                container_state_done(&c->ended_last);
                c->ended_last = c->ended;
                c->ended = (ContainerState){ 0 };
        }
        c->driver->get_image(c->userdata);
}

static void enter_queued(ContainerLife *c) {
        c->image_delay_usec = 0;
        c->driver->ask_turn(c->userdata);
}

static void start_failed(ContainerLife *c, bool by_runtime, const char *reason,
                         const char *message);

static void enter_creating(ContainerLife *c) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        c->started_at = 0;
        r = c->driver->run(c->userdata, c->attempt, &error);
        if (r >= 0) {
                c->attempt_is_used = true;
                return;
        }
        start_failed(c, /* by_runtime= */ false,
                     r == -CONTAINER_CONFIG_ERROR ? "CreateContainerConfigError"
                                                  : "CreateContainerError",
                     error_message(&error, r));
        /* What it refers to may come with a manifest. */
        c->waits_for_reference = r == -CONTAINER_CONFIG_ERROR && c->state == LIFE_BACK_OFF;
}

/* Removes what earlier attempts left; with 'and_present' the present one has ended too. */
static void remove_remains(ContainerLife *c, bool and_present) {
        unsigned end = c->attempt + (and_present && c->attempt_is_used ? 1 : 0);

        for (; c->oldest_remains < end; c->oldest_remains++)
                c->driver->remove(c->userdata, c->oldest_remains);
}

static const Handler *hook_of(const ContainerLife *c, ContainerHook hook) {
        const Lifecycle *lifecycle = c->spec->lifecycle;

        if (!lifecycle)
                return NULL;
        return hook == HOOK_POST_START ? lifecycle->post_start : lifecycle->pre_stop;
}

static void enter_post_start(ContainerLife *c) {
        if (!hook_of(c, HOOK_POST_START) || c->has_post_started)
                handle(c, EVENT_HOOK_DONE);
        else
                c->driver->run_hook(c->userdata, HOOK_POST_START, c->attempt, false);
}

static void enter_running(ContainerLife *c) {
        c->has_post_started = true;
        /* Only now: the restart is what somebody waits for, tidying up is not. */
        remove_remains(c, /* and_present= */ false);
}

static void enter_pre_stop(ContainerLife *c) {
        if (!hook_of(c, HOOK_PRE_STOP))
                handle(c, EVENT_HOOK_DONE);
        else
                c->driver->run_hook(c->userdata, HOOK_PRE_STOP, c->attempt, c->stops_for_good);
}

static void enter_stopping(ContainerLife *c) {
        c->driver->stop(c->userdata, c->attempt, c->stops_for_good);
}

static void enter_back_off(ContainerLife *c) {
        remove_remains(c, /* and_present= */ true);
        c->driver->arm_retry(c->userdata, c->retry_delay_usec);
}

static void enter_finished(ContainerLife *c) {
        bool runs_again = c->runs_again;

        c->runs_again = false;
        remove_remains(c, /* and_present= */ true);
        if (runs_again)
                handle(c, EVENT_EDIT);
}

typedef struct Move {
        bool is_legal;
        LifeState to;
        void (*enter)(ContainerLife *c);
} Move;

#define MOVE(state, enter_state) \
        { true, LIFE_##state, enter_state }

/* clang-format off */
static const Move moves[N_LIFE_STATES][N_EVENTS] = {
        [LIFE_IDLE] = {
                [EVENT_START]        = MOVE(PULLING,  enter_pulling),
                [EVENT_STARTED]      = MOVE(POST_START, enter_post_start), /* these three: found by a new agent */
                [EVENT_START_FAILED] = MOVE(BACK_OFF, enter_back_off),
                [EVENT_DONE]         = MOVE(FINISHED, enter_finished),
                [EVENT_SANDBOX_GONE] = MOVE(IDLE,     enter_idle),
                [EVENT_STOP]         = MOVE(FINISHED, enter_finished),
        },
        [LIFE_PULLING] = {
                [EVENT_IMAGE_READY]  = MOVE(QUEUED,   enter_queued),
                [EVENT_IMAGE_FAILED] = MOVE(BACK_OFF, enter_back_off),
                [EVENT_SANDBOX_GONE] = MOVE(IDLE,     enter_idle),
                [EVENT_STOP]         = MOVE(FINISHED, enter_finished),
                [EVENT_EDIT]         = MOVE(IDLE,     enter_idle),
        },
        [LIFE_QUEUED] = {
                [EVENT_TURN]         = MOVE(CREATING, enter_creating),
                [EVENT_SANDBOX_GONE] = MOVE(IDLE,     enter_idle),
                [EVENT_STOP]         = MOVE(FINISHED, enter_finished),
                [EVENT_EDIT]         = MOVE(IDLE,     enter_idle),
        },
        [LIFE_CREATING] = {
                [EVENT_STARTED]      = MOVE(POST_START, enter_post_start),
                [EVENT_START_FAILED] = MOVE(BACK_OFF, enter_back_off),
                [EVENT_DONE]         = MOVE(FINISHED, enter_finished),
                [EVENT_SANDBOX_GONE] = MOVE(IDLE,     enter_idle),
                [EVENT_STOP]         = MOVE(STOPPING, enter_stopping),
                [EVENT_EDIT]         = MOVE(STOPPING, enter_stopping),
        },
        [LIFE_POST_START] = {
                [EVENT_STARTED]      = MOVE(POST_START, enter_post_start), /* nobody heard how it went */
                [EVENT_HOOK_DONE]    = MOVE(UP,       enter_running),
                [EVENT_RESTART]      = MOVE(PULLING,  enter_pulling),
                [EVENT_WAIT]         = MOVE(BACK_OFF, enter_back_off),
                [EVENT_DONE]         = MOVE(FINISHED, enter_finished),
                [EVENT_SANDBOX_GONE] = MOVE(IDLE,     enter_idle),
                [EVENT_KILL]         = MOVE(PRE_STOP, enter_pre_stop),
                [EVENT_STOP]         = MOVE(PRE_STOP, enter_pre_stop),
                [EVENT_EDIT]         = MOVE(PRE_STOP, enter_pre_stop),
        },
        [LIFE_UP] = {
                [EVENT_RESTART]      = MOVE(PULLING,  enter_pulling),
                [EVENT_WAIT]         = MOVE(BACK_OFF, enter_back_off),
                [EVENT_DONE]         = MOVE(FINISHED, enter_finished),
                [EVENT_SANDBOX_GONE] = MOVE(IDLE,     enter_idle),
                [EVENT_KILL]         = MOVE(PRE_STOP, enter_pre_stop),
                [EVENT_STOP]         = MOVE(PRE_STOP, enter_pre_stop),
                [EVENT_EDIT]         = MOVE(PRE_STOP, enter_pre_stop),
        },
        [LIFE_PRE_STOP] = {
                [EVENT_STARTED]      = MOVE(PRE_STOP, enter_pre_stop), /* as above */
                [EVENT_HOOK_DONE]    = MOVE(STOPPING, enter_stopping),
                [EVENT_RESTART]      = MOVE(PULLING,  enter_pulling),
                [EVENT_WAIT]         = MOVE(BACK_OFF, enter_back_off),
                [EVENT_DONE]         = MOVE(FINISHED, enter_finished),
                [EVENT_SANDBOX_GONE] = MOVE(IDLE,     enter_idle),
        },
        [LIFE_STOPPING] = {
                [EVENT_STARTED]      = MOVE(STOPPING, enter_stopping), /* it was being created */
                [EVENT_START_FAILED] = MOVE(FINISHED, enter_finished),
                [EVENT_RESTART]      = MOVE(PULLING,  enter_pulling),
                [EVENT_WAIT]         = MOVE(BACK_OFF, enter_back_off),
                [EVENT_DONE]         = MOVE(FINISHED, enter_finished),
                [EVENT_SANDBOX_GONE] = MOVE(IDLE,     enter_idle),
                [EVENT_STOP]         = MOVE(STOPPING, enter_stopping), /* it was only killed */
        },
        [LIFE_BACK_OFF] = {
                [EVENT_RETRY]        = MOVE(PULLING,  enter_pulling),
                [EVENT_SANDBOX_GONE] = MOVE(IDLE,     enter_idle),
                [EVENT_STOP]         = MOVE(FINISHED, enter_finished),
                [EVENT_EDIT]         = MOVE(IDLE,     enter_idle),
        },
        [LIFE_FINISHED] = {
                [EVENT_AGAIN]        = MOVE(IDLE,     enter_idle),
                [EVENT_EDIT]         = MOVE(IDLE,     enter_idle),
        },
};
/* clang-format on */

static void set_waiting(ContainerLife *c, const char *reason, const char *message) {
        free(c->waiting_reason);
        free(c->waiting_message);
        c->waiting_reason = reason ? strdup(reason) : NULL;
        c->waiting_message = message ? strdup(message) : NULL;
}

/* The one writer: drops what the new state does not use, says so, and marks the status. */
void container_set_state(ContainerLife *c, LifeState state) {
        LifeState old = c->state;

        if (life_facts[old].uses_image_request && !life_facts[state].uses_image_request)
                c->driver->drop_image(c->userdata);
        if (life_facts[old].uses_turn && !life_facts[state].uses_turn)
                c->driver->leave_turn(c->userdata);
        if (life_facts[old].uses_retry && !life_facts[state].uses_retry)
                c->driver->disarm_retry(c->userdata);
        if (life_facts[old].uses_hook && old != state)
                c->driver->drop_hook(c->userdata);
        /* Who looks again for what was missing says so until it is found. */
        if (state != LIFE_BACK_OFF && state != LIFE_PULLING)
                set_waiting(c, NULL, NULL);
        c->waits_for_reference = false;
        c->state = state;
        log_debug("'%s': %s -> %s", c->description, life_facts[old].name, life_facts[state].name);
        c->driver->changed(c->userdata);
}

static void handle(ContainerLife *c, Event event) {
        const Move *move = &moves[c->state][event];

        if (!move->is_legal) {
                log_debug("'%s': '%s' means nothing while %s, ignoring", c->description,
                          event_names[event], life_facts[c->state].name);
                return;
        }
        container_set_state(c, move->to);
        move->enter(c);
}

int container_new(const ObjectMeta *pod, const Container *spec, const RestartTerms *terms,
                  const char *waiting_reason, const BackOff *back_off,
                  const ContainerDriver *driver, void *userdata, ContainerLife **ret) {
        ContainerLife *c = calloc(1, sizeof(*c));

        if (!c)
                return -ENOMEM;
        if (asprintf(&c->description, "%s/%s/%s", pod->namespace, pod->name, spec->name) < 0) {
                free(c);
                return -ENOMEM;
        }
        c->pod = pod;
        c->spec = spec;
        c->terms = *terms;
        c->idle_reason = waiting_reason;
        c->back_off = back_off;
        c->driver = driver;
        c->userdata = userdata;
        *ret = c;
        return 0;
}

ContainerLife *container_free(ContainerLife *c) {
        if (!c)
                return NULL;
        set_waiting(c, NULL, NULL);
        container_state_done(&c->ended);
        container_state_done(&c->ended_last);
        free(c->kill_message);
        free(c->post_start_failure);
        free(c->description);
        free(c);
        return NULL;
}

void container_start(ContainerLife *c) {
        handle(c, EVENT_START);
}

void container_set_spec(ContainerLife *c, const Container *spec, const RestartTerms *terms) {
        c->spec = spec;
        c->terms = *terms;
}

void container_edit(ContainerLife *c) {
        c->next_delay_usec = 0;
        c->image_delay_usec = 0;
        if (c->state == LIFE_IDLE || c->stops_for_good)
                return;
        if (container_has_process(c))
                c->runs_again = true;
        if (!container_is_stopping(c))
                handle(c, EVENT_EDIT);
}

void container_forgive(ContainerLife *c) {
        if (c->state == LIFE_BACK_OFF)
                container_edit(c);
        else
                c->next_delay_usec = 0;
}

void container_stop(ContainerLife *c) {
        bool is_being_stopped = c->stops_for_good && container_is_stopping(c);

        c->runs_again = false;
        c->is_retired = c->stops_for_good = true;
        if (!is_being_stopped && c->state != LIFE_FINISHED)
                handle(c, EVENT_STOP);
}

void container_kill(ContainerLife *c, const char *why) {
        if (!moves[c->state][EVENT_KILL].is_legal)
                return;
        c->is_killed = true;
        set_text(&c->kill_message, why);
        handle(c, EVENT_KILL);
}

void container_on_hook_done(ContainerLife *c, const char *failure) {
        if (c->state != LIFE_POST_START || !failure) {
                handle(c, EVENT_HOOK_DONE);
                return;
        }
        set_text(&c->post_start_failure, failure);
        container_kill(c, failure);
}

void container_retire(ContainerLife *c) {
        c->is_retired = true;
        if (!container_has_process(c))
                container_stop(c);
}

void container_again(ContainerLife *c) {
        if (c->state != LIFE_FINISHED)
                return;
        c->is_retired = c->stops_for_good = false;
        c->wants_all = false;
        handle(c, EVENT_AGAIN);
}

void container_retry_now(ContainerLife *c, bool sandbox_is_ready) {
        if (container_waits_for_image(c))
                container_on_retry(c, sandbox_is_ready);
}

void container_retry_references(ContainerLife *c, bool sandbox_is_ready) {
        if (c->state == LIFE_BACK_OFF && c->waits_for_reference)
                container_on_retry(c, sandbox_is_ready);
}

void container_on_image_ready(ContainerLife *c) {
        handle(c, EVENT_IMAGE_READY);
}

void container_on_image_failed(ContainerLife *c, const char *reason, const char *message) {
        if (c->state != LIFE_PULLING)
                return;
        set_waiting(c, reason, message);
        c->image_delay_usec = back_off_next(c->image_delay_usec, c->back_off);
        c->retry_delay_usec = c->image_delay_usec;
        handle(c, EVENT_IMAGE_FAILED);
}

void container_on_turn(ContainerLife *c) {
        handle(c, EVENT_TURN);
}

void container_on_started(ContainerLife *c, unsigned attempt, uint64_t started_at) {
        if (attempt != c->attempt)
                return;
        if (c->state == LIFE_CREATING)
                log_info("Container '%s' runs, attempt %u", c->description, attempt);
        c->attempt_is_used = true;
        c->started_at = started_at;
        handle(c, EVENT_STARTED);
}

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
static void start_failed(ContainerLife *c, bool by_runtime, const char *reason,
                         const char *message) {
        uint64_t now = now_realtime_usec();
        ContainerExit end = { .exit_code = 128, .started_at = now, .finished_at = now };
        RestartTerms always = { .policy = RESTART_POLICY_ALWAYS };
        RestartDecision decision;

        if (by_runtime)
                container_record_end(c, &end, "StartError", message);
        if (c->runs_again) { /* what failed is not what is wanted now */
                handle(c, EVENT_DONE);
                return;
        }
        decision = restart_decide(by_runtime ? &c->terms : &always, end.exit_code, 0,
                                  c->next_delay_usec, c->back_off);
        c->next_delay_usec = decision.next_delay_usec;
        if (c->state != LIFE_STOPPING && is_last(c, &decision)) {
                handle(c, EVENT_DONE);
                return;
        }
        /* No immediate second try: what failed a moment ago fails again, and its sentence would be
         * lost. */
        c->retry_delay_usec = MAX(decision.delay_usec, c->back_off->initial_usec);
        c->next_delay_usec = back_off_next(c->retry_delay_usec, c->back_off);
        set_waiting(c, reason, message);
        handle(c, EVENT_START_FAILED);
}

void container_on_start_failed(ContainerLife *c, unsigned attempt, bool by_runtime,
                               const char *message) {
        if (attempt == c->attempt && life_facts[c->state].may_fail_to_start)
                start_failed(c, by_runtime,
                             by_runtime ? "RunContainerError" : "CreateContainerError", message);
}

/* In the kubelet's words. */
static void say_back_off(ContainerLife *c, uint64_t delay_usec) {
        cleanup_free char *message = NULL;
        char delay[DURATION_SIZE];

        if (asprintf(&message, "back-off %s restarting failed container=%s pod=%s_%s(%s)",
                     duration_format(delay, delay_usec), c->spec->name, c->pod->name,
                     c->pod->namespace, c->pod->uid) < 0)
                message = NULL;
        set_waiting(c, "CrashLoopBackOff", message);
}

/* As after a start that failed: no immediate second try, so that its sentence is not lost. */
static void wait_after_hook(ContainerLife *c, const RestartDecision *decision) {
        cleanup_free char *failure = TAKE_PTR(c->post_start_failure);

        c->retry_delay_usec = MAX(decision->delay_usec, c->back_off->initial_usec);
        c->next_delay_usec = back_off_next(c->retry_delay_usec, c->back_off);
        set_waiting(c, "PostStartHookError", failure);
        handle(c, EVENT_WAIT);
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
                handle(c, EVENT_DONE);
                return;
        }
        c->next_delay_usec = decision.next_delay_usec;
        if (restart == EVENT_RESTART && c->post_start_failure) {
                wait_after_hook(c, &decision);
                return;
        }
        if (!sits_out || decision.verdict == RESTART_NOW) {
                handle(c, restart);
                return;
        }
        say_back_off(c, decision.delay_usec);
        c->retry_delay_usec = container_remaining_delay(decision.delay_usec, end->finished_at);
        handle(c, EVENT_WAIT);
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

void container_on_retry(ContainerLife *c, bool sandbox_is_ready) {
        handle(c, sandbox_is_ready ? EVENT_RETRY : EVENT_SANDBOX_GONE);
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
                handle(c, EVENT_SANDBOX_GONE);
                return;
        }
        /* With the shim went all the remains of its attempts. */
        c->oldest_remains = c->attempt + 1;
        container_end_unseen(c, &end, "The container could not be located when its shim ended");
}

void container_print_moves(FILE *out) {
        (void) fprintf(out, "| |");
        for (size_t s = 0; s < N_LIFE_STATES; s++)
                (void) fprintf(out, " %s |", life_facts[s].name);
        (void) fprintf(out, "\n|---|");
        for (size_t s = 0; s < N_LIFE_STATES; s++)
                (void) fprintf(out, "---|");
        for (size_t e = 0; e < N_EVENTS; e++) {
                (void) fprintf(out, "\n| **%s** |", event_names[e]);
                for (size_t s = 0; s < N_LIFE_STATES; s++)
                        (void) fprintf(out, " %s |",
                                       moves[s][e].is_legal ? life_facts[moves[s][e].to].name : "");
        }
        (void) fprintf(out, "\n");
}
