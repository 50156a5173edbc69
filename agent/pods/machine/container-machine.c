/* SPDX-License-Identifier: Apache-2.0 */
/* The container state machine. One table describes the states, a second one the legal transitions;
 * effects are in the enter_…() functions; only container_machine_set_state() writes the state.
 * container-exit.c handles the end of an attempt.
 *
 * An attempt is one run of the container. Its number is the restart count, and part of its ID and
 * of the name of its log. The number is used up once the shim has received the request to run the
 * attempt, regardless of the result. */

#include "agent/pods/machine/container-machine-private.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "common/log.h"
#include "common/text.h"

/* clang-format off */
const MachineStateInfo machine_states[N_MACHINE_STATES] = {
        [MACHINE_IDLE]       = { "idle",       STATE_WAITING,    NULL,                false, false, false, false, false, true,  false },
        [MACHINE_PULLING]    = { "pulling",    STATE_WAITING,    NULL,                false, true,  false, false, false, false, false },
        [MACHINE_QUEUED]     = { "queued",     STATE_WAITING,    NULL,                false, false, true,  false, false, false, false },
        [MACHINE_CREATING]   = { "creating",   STATE_WAITING,    NULL,                true,  false, true,  false, false, true,  false },
        [MACHINE_POST_START] = { "post-start", STATE_WAITING,    NULL,                true,  false, false, false, true,  false, true },
        [MACHINE_RUNNING]    = { "running",    STATE_RUNNING,    NULL,                true,  false, false, false, false, false, true },
        [MACHINE_PRE_STOP]   = { "pre-stop",   STATE_RUNNING,    NULL,                true,  false, false, false, true,  false, true },
        [MACHINE_AWAITING_TURN] = { "awaiting-turn", STATE_RUNNING, NULL,             true,  false, false, false, false, true,  true },
        [MACHINE_STOPPING]   = { "stopping",   STATE_RUNNING,    NULL,                true,  false, false, false, false, true,  true },
        [MACHINE_BACK_OFF]   = { "back-off",   STATE_WAITING,    "CrashLoopBackOff",  false, false, false, true,  false, false, false },
        [MACHINE_FINISHED]   = { "finished",   STATE_TERMINATED, NULL,                false, false, false, false, false, false, false },
};

static const char *const machine_event_names[N_MACHINE_EVENTS] = {
        [MACHINE_EVENT_START]        = "start",
        [MACHINE_EVENT_IMAGE_READY]  = "image ready",
        [MACHINE_EVENT_IMAGE_FAILED] = "image failed",
        [MACHINE_EVENT_START_SLOT]   = "start slot",
        [MACHINE_EVENT_STARTED]      = "started",
        [MACHINE_EVENT_HOOK_DONE]    = "hook done",
        [MACHINE_EVENT_START_FAILED] = "start failed",
        [MACHINE_EVENT_RESTART]      = "exited, restart",
        [MACHINE_EVENT_BACK_OFF]     = "exited, back-off",
        [MACHINE_EVENT_DONE]         = "exited, done",
        [MACHINE_EVENT_RETRY]        = "retry",
        [MACHINE_EVENT_SANDBOX_LOST] = "sandbox lost",
        [MACHINE_EVENT_KILL]         = "kill",
        [MACHINE_EVENT_STOP]         = "stop",
        [MACHINE_EVENT_TURN]         = "its turn",
        [MACHINE_EVENT_RESET]        = "reset",
        [MACHINE_EVENT_EDIT]         = "edited",
};
/* clang-format on */

static void replace_text(char **text, const char *value) {
        free(*text);
        *text = value ? strdup(value) : NULL;
}

static void enter_idle_state(ContainerMachine *c) {
        c->is_interrupted = false;
}

void container_machine_keep_as_last(ContainerMachine *c, unsigned attempt) {
        if (c->terminated.kind != STATE_TERMINATED)
                return;
        container_state_done(&c->last_terminated);
        c->last_terminated = c->terminated;
        c->last_attempt = attempt;
        c->terminated = (ContainerState){ 0 };
}

static void enter_pulling_state(ContainerMachine *c) {
        c->is_killed = false;
        c->has_post_started = false;
        replace_text(&c->post_start_failure, NULL);
        if (c->attempt_is_used) {
                container_machine_keep_as_last(c, c->attempt);
                c->attempt++;
                c->attempt_is_used = false;
        }
        c->driver->request_images(c->userdata);
}

static void enter_queued_state(ContainerMachine *c) {
        c->image_delay_usec = 0;
        c->driver->acquire_start_slot(c->userdata);
}

static void enter_creating_state(ContainerMachine *c) {
        cleanup_error Error error = ERROR_NULL;
        bool is_reference;
        int r;

        c->started_at = 0;
        c->running_since = (SteadyStamp){ 0 };
        r = c->driver->run(c->userdata, c->attempt, &error);
        if (r >= 0) {
                c->attempt_is_used = true;
                return;
        }
        is_reference = r == -CONTAINER_CONFIG_ERROR || r == -CONTAINER_AWAITED;
        container_machine_start_failed(c, /* by_runtime= */ false,
                                       is_reference ? "CreateContainerConfigError"
                                                    : "CreateContainerError",
                                       error_message(&error, r));
        /* A manifest may add the missing object, or a driver the device. */
        c->waits_for_reference =
                (is_reference || r == -CONTAINER_DEVICE_MISSING) && c->state == MACHINE_BACK_OFF;
}

/* Container GC: removes the remains of earlier attempts; with 'and_present', the current one has
 * also ended. */
static void remove_attempt_remains(ContainerMachine *c, bool and_present) {
        unsigned end = c->attempt + (and_present && c->attempt_is_used ? 1 : 0);

        for (; c->oldest_remains < end; c->oldest_remains++)
                c->driver->remove_attempt(c->userdata, c->oldest_remains);
}

static const Handler *find_lifecycle_hook(const ContainerMachine *c, LifecycleHook hook) {
        const Lifecycle *lifecycle = c->spec->lifecycle;

        if (!lifecycle)
                return NULL;
        return hook == HOOK_POST_START ? lifecycle->post_start : lifecycle->pre_stop;
}

static void enter_post_start_state(ContainerMachine *c) {
        if (!find_lifecycle_hook(c, HOOK_POST_START) || c->has_post_started)
                container_machine_handle_event(c, MACHINE_EVENT_HOOK_DONE);
        else
                c->driver->run_hook(c->userdata, HOOK_POST_START, c->attempt, false);
}

static void enter_running_state(ContainerMachine *c) {
        c->has_post_started = true;
        /* This happens only now, because a restart must not wait for the removal. */
        remove_attempt_remains(c, /* and_present= */ false);
}

static void enter_pre_stop_state(ContainerMachine *c) {
        if (!find_lifecycle_hook(c, HOOK_PRE_STOP))
                container_machine_handle_event(c, MACHINE_EVENT_HOOK_DONE);
        else
                c->driver->run_hook(c->userdata, HOOK_PRE_STOP, c->attempt, c->stops_for_good);
}

/* It was only being killed, with a separate grace period; now it is stopped permanently. */
static void enter_hurried_pre_stop_state(ContainerMachine *c) {
        c->driver->shorten_grace(c->userdata);
}

static void enter_awaiting_turn_state(ContainerMachine *c) {
        if (c->awaits_turn)
                c->driver->shorten_grace(c->userdata);
        else
                container_machine_handle_event(c, MACHINE_EVENT_TURN);
}

static void enter_stopping_state(ContainerMachine *c) {
        c->driver->stop(c->userdata, c->attempt, c->stops_for_good);
}

static void enter_back_off_state(ContainerMachine *c) {
        remove_attempt_remains(c, /* and_present= */ true);
        c->driver->arm_retry(c->userdata, c->retry_delay_usec);
}

static void enter_finished_state(ContainerMachine *c) {
        bool runs_again = c->restarts_when_stopped;

        c->restarts_when_stopped = false;
        remove_attempt_remains(c, /* and_present= */ true);
        if (runs_again)
                container_machine_handle_event(c, MACHINE_EVENT_EDIT);
}

typedef struct MachineTransition {
        bool is_legal;
        ContainerMachineState to;
        void (*enter)(ContainerMachine *c);
} MachineTransition;

#define TRANSITION(state, enter_state) \
        { true, MACHINE_##state, enter_state }

/* clang-format off */
static const MachineTransition machine_transitions[N_MACHINE_STATES][N_MACHINE_EVENTS] = {
        [MACHINE_IDLE] = {
                [MACHINE_EVENT_START]        = TRANSITION(PULLING,  enter_pulling_state),
                [MACHINE_EVENT_STARTED]      = TRANSITION(POST_START, enter_post_start_state), /* these three are used when a new agent has found the state */
                [MACHINE_EVENT_START_FAILED] = TRANSITION(BACK_OFF, enter_back_off_state),
                [MACHINE_EVENT_DONE]         = TRANSITION(FINISHED, enter_finished_state),
                [MACHINE_EVENT_SANDBOX_LOST] = TRANSITION(IDLE,     enter_idle_state),
                [MACHINE_EVENT_STOP]         = TRANSITION(FINISHED, enter_finished_state),
        },
        [MACHINE_PULLING] = {
                [MACHINE_EVENT_IMAGE_READY]  = TRANSITION(QUEUED,   enter_queued_state),
                [MACHINE_EVENT_IMAGE_FAILED] = TRANSITION(BACK_OFF, enter_back_off_state),
                [MACHINE_EVENT_SANDBOX_LOST] = TRANSITION(IDLE,     enter_idle_state),
                [MACHINE_EVENT_STOP]         = TRANSITION(FINISHED, enter_finished_state),
                [MACHINE_EVENT_EDIT]         = TRANSITION(IDLE,     enter_idle_state),
        },
        [MACHINE_QUEUED] = {
                [MACHINE_EVENT_START_SLOT]   = TRANSITION(CREATING, enter_creating_state),
                [MACHINE_EVENT_SANDBOX_LOST] = TRANSITION(IDLE,     enter_idle_state),
                [MACHINE_EVENT_STOP]         = TRANSITION(FINISHED, enter_finished_state),
                [MACHINE_EVENT_EDIT]         = TRANSITION(IDLE,     enter_idle_state),
        },
        [MACHINE_CREATING] = {
                [MACHINE_EVENT_STARTED]      = TRANSITION(POST_START, enter_post_start_state),
                [MACHINE_EVENT_START_FAILED] = TRANSITION(BACK_OFF, enter_back_off_state),
                [MACHINE_EVENT_DONE]         = TRANSITION(FINISHED, enter_finished_state),
                [MACHINE_EVENT_SANDBOX_LOST] = TRANSITION(IDLE,     enter_idle_state),
                [MACHINE_EVENT_STOP]         = TRANSITION(AWAITING_TURN, enter_awaiting_turn_state),
                [MACHINE_EVENT_EDIT]         = TRANSITION(AWAITING_TURN, enter_awaiting_turn_state),
        },
        [MACHINE_POST_START] = {
                [MACHINE_EVENT_STARTED]      = TRANSITION(POST_START, enter_post_start_state), /* its result was lost */
                [MACHINE_EVENT_HOOK_DONE]    = TRANSITION(RUNNING,       enter_running_state),
                [MACHINE_EVENT_RESTART]      = TRANSITION(PULLING,  enter_pulling_state),
                [MACHINE_EVENT_BACK_OFF]     = TRANSITION(BACK_OFF, enter_back_off_state),
                [MACHINE_EVENT_DONE]         = TRANSITION(FINISHED, enter_finished_state),
                [MACHINE_EVENT_SANDBOX_LOST] = TRANSITION(IDLE,     enter_idle_state),
                [MACHINE_EVENT_KILL]         = TRANSITION(PRE_STOP, enter_pre_stop_state),
                [MACHINE_EVENT_STOP]         = TRANSITION(PRE_STOP, enter_pre_stop_state),
                [MACHINE_EVENT_EDIT]         = TRANSITION(PRE_STOP, enter_pre_stop_state),
        },
        [MACHINE_RUNNING] = {
                [MACHINE_EVENT_RESTART]      = TRANSITION(PULLING,  enter_pulling_state),
                [MACHINE_EVENT_BACK_OFF]     = TRANSITION(BACK_OFF, enter_back_off_state),
                [MACHINE_EVENT_DONE]         = TRANSITION(FINISHED, enter_finished_state),
                [MACHINE_EVENT_SANDBOX_LOST] = TRANSITION(IDLE,     enter_idle_state),
                [MACHINE_EVENT_KILL]         = TRANSITION(PRE_STOP, enter_pre_stop_state),
                [MACHINE_EVENT_STOP]         = TRANSITION(PRE_STOP, enter_pre_stop_state),
                [MACHINE_EVENT_EDIT]         = TRANSITION(PRE_STOP, enter_pre_stop_state),
        },
        [MACHINE_PRE_STOP] = {
                [MACHINE_EVENT_STARTED]      = TRANSITION(PRE_STOP, enter_pre_stop_state), /* as above */
                [MACHINE_EVENT_HOOK_DONE]    = TRANSITION(AWAITING_TURN, enter_awaiting_turn_state),
                [MACHINE_EVENT_RESTART]      = TRANSITION(PULLING,  enter_pulling_state),
                [MACHINE_EVENT_BACK_OFF]     = TRANSITION(BACK_OFF, enter_back_off_state),
                [MACHINE_EVENT_DONE]         = TRANSITION(FINISHED, enter_finished_state),
                [MACHINE_EVENT_SANDBOX_LOST] = TRANSITION(IDLE,     enter_idle_state),
                [MACHINE_EVENT_STOP]         = TRANSITION(PRE_STOP, enter_hurried_pre_stop_state), /* the hook continues, with the shorter grace period */
        },
        [MACHINE_AWAITING_TURN] = {
                [MACHINE_EVENT_STARTED]      = TRANSITION(AWAITING_TURN, enter_awaiting_turn_state), /* it was being created */
                [MACHINE_EVENT_START_FAILED] = TRANSITION(FINISHED, enter_finished_state),
                [MACHINE_EVENT_RESTART]      = TRANSITION(PULLING,  enter_pulling_state),
                [MACHINE_EVENT_BACK_OFF]     = TRANSITION(BACK_OFF, enter_back_off_state),
                [MACHINE_EVENT_DONE]         = TRANSITION(FINISHED, enter_finished_state),
                [MACHINE_EVENT_SANDBOX_LOST] = TRANSITION(IDLE,     enter_idle_state),
                [MACHINE_EVENT_TURN]         = TRANSITION(STOPPING, enter_stopping_state),
        },
        [MACHINE_STOPPING] = {
                [MACHINE_EVENT_STARTED]      = TRANSITION(STOPPING, enter_stopping_state), /* it was being created */
                [MACHINE_EVENT_START_FAILED] = TRANSITION(FINISHED, enter_finished_state),
                [MACHINE_EVENT_RESTART]      = TRANSITION(PULLING,  enter_pulling_state),
                [MACHINE_EVENT_BACK_OFF]     = TRANSITION(BACK_OFF, enter_back_off_state),
                [MACHINE_EVENT_DONE]         = TRANSITION(FINISHED, enter_finished_state),
                [MACHINE_EVENT_SANDBOX_LOST] = TRANSITION(IDLE,     enter_idle_state),
                [MACHINE_EVENT_STOP]         = TRANSITION(STOPPING, enter_stopping_state), /* it was
                                                                                            * only
                                                                                            * being
                                                                                             * killed */
        },
        [MACHINE_BACK_OFF] = {
                [MACHINE_EVENT_RETRY]        = TRANSITION(PULLING,  enter_pulling_state),
                [MACHINE_EVENT_SANDBOX_LOST] = TRANSITION(IDLE,     enter_idle_state),
                [MACHINE_EVENT_STOP]         = TRANSITION(FINISHED, enter_finished_state),
                [MACHINE_EVENT_EDIT]         = TRANSITION(IDLE,     enter_idle_state),
        },
        [MACHINE_FINISHED] = {
                [MACHINE_EVENT_RESET]        = TRANSITION(IDLE,     enter_idle_state),
                [MACHINE_EVENT_EDIT]         = TRANSITION(IDLE,     enter_idle_state),
        },
};
/* clang-format on */

void container_machine_set_waiting(ContainerMachine *c, const char *reason, const char *message) {
        free(c->waiting_reason);
        free(c->waiting_message);
        c->waiting_reason = reason ? strdup(reason) : NULL;
        c->waiting_message = message ? strdup(message) : NULL;
}

/* Releases resources that the new state does not use, and reports the change. */
void container_machine_set_state(ContainerMachine *c, ContainerMachineState state) {
        ContainerMachineState old = c->state;

        if (machine_states[old].uses_image_request && !machine_states[state].uses_image_request)
                c->driver->cancel_image_request(c->userdata);
        if (machine_states[old].uses_start_slot && !machine_states[state].uses_start_slot)
                c->driver->release_start_slot(c->userdata);
        if (machine_states[old].uses_retry && !machine_states[state].uses_retry)
                c->driver->disarm_retry(c->userdata);
        if (machine_states[old].uses_hook && old != state)
                c->driver->cancel_hook(c->userdata);
        /* After a failure the reason remains until the container runs. */
        if (machine_states[state].api_state != STATE_WAITING || state == MACHINE_IDLE)
                container_machine_set_waiting(c, NULL, NULL);
        c->waits_for_reference = false;
        c->state = state;
        log_debug("Container '%s': %s -> %s", c->description, machine_states[old].name,
                  machine_states[state].name);
        c->driver->status_changed(c->userdata);
}

void container_machine_handle_event(ContainerMachine *c, ContainerMachineEvent event) {
        const MachineTransition *transition = &machine_transitions[c->state][event];

        if (!transition->is_legal) {
                log_debug("Container '%s': event '%s' is not expected in state '%s', ignoring it",
                          c->description, machine_event_names[event],
                          machine_states[c->state].name);
                return;
        }
        container_machine_set_state(c, transition->to);
        transition->enter(c);
}

int container_machine_new(const ObjectMeta *pod, const Container *spec,
                          const ContainerRestartPolicy *terms, const char *waiting_reason,
                          const BackOffLimits *back_off, const ContainerDriver *driver,
                          void *userdata, ContainerMachine **ret) {
        ContainerMachine *c = calloc(1, sizeof(*c));

        if (!c)
                return -ENOMEM;
        c->description = text_format("%s/%s/%s", pod->namespace, pod->name, spec->name);
        if (!c->description) {
                free(c);
                return -ENOMEM;
        }
        c->pod = pod;
        c->spec = spec;
        c->terms = *terms;
        c->default_waiting_reason = waiting_reason;
        c->back_off = back_off;
        c->driver = driver;
        c->userdata = userdata;
        *ret = c;
        return 0;
}

ContainerMachine *container_machine_free(ContainerMachine *c) {
        if (!c)
                return NULL;
        container_machine_set_waiting(c, NULL, NULL);
        container_state_done(&c->terminated);
        container_state_done(&c->last_terminated);
        free(c->kill_message);
        free(c->post_start_failure);
        free(c->description);
        free(c);
        return NULL;
}

void container_machine_start(ContainerMachine *c) {
        container_machine_handle_event(c, MACHINE_EVENT_START);
}

void container_machine_set_spec(ContainerMachine *c, const Container *spec,
                                const ContainerRestartPolicy *terms) {
        c->spec = spec;
        c->terms = *terms;
}

void container_machine_restart_edited(ContainerMachine *c) {
        c->next_delay_usec = 0;
        c->image_delay_usec = 0;
        if (c->state == MACHINE_IDLE || c->stops_for_good)
                return;
        if (container_machine_has_process(c))
                c->restarts_when_stopped = true;
        if (!container_machine_is_stopping(c))
                container_machine_handle_event(c, MACHINE_EVENT_EDIT);
}

void container_machine_reset_back_off(ContainerMachine *c) {
        if (c->state == MACHINE_BACK_OFF)
                container_machine_restart_edited(c);
        else
                c->next_delay_usec = 0;
}

static void stop_for_good(ContainerMachine *c) {
        bool is_being_stopped = c->stops_for_good && container_machine_is_stopping(c);

        c->restarts_when_stopped = false;
        c->is_restart_disabled = c->stops_for_good = true;
        if (is_being_stopped || c->state == MACHINE_FINISHED)
                return;
        c->is_interrupted = true;
        container_machine_handle_event(c, MACHINE_EVENT_STOP);
}

void container_machine_stop(ContainerMachine *c) {
        c->awaits_turn = false;
        if (c->state == MACHINE_AWAITING_TURN)
                container_machine_handle_event(c, MACHINE_EVENT_TURN);
        stop_for_good(c);
}

/* The container's turn comes only once: if it is already being stopped permanently, it simply
 * continues. */
void container_machine_stop_in_turn(ContainerMachine *c) {
        if (c->stops_for_good)
                return;
        c->awaits_turn = true;
        stop_for_good(c);
}

bool container_machine_can_be_killed(const ContainerMachine *c) {
        return machine_transitions[c->state][MACHINE_EVENT_KILL].is_legal;
}

void container_machine_kill(ContainerMachine *c, const char *why) {
        if (!container_machine_can_be_killed(c))
                return;
        c->is_killed = true;
        replace_text(&c->kill_message, why);
        container_machine_handle_event(c, MACHINE_EVENT_KILL);
}

void container_machine_on_hook_done(ContainerMachine *c, const char *failure) {
        if (c->state != MACHINE_POST_START || !failure) {
                container_machine_handle_event(c, MACHINE_EVENT_HOOK_DONE);
                return;
        }
        replace_text(&c->post_start_failure, failure);
        container_machine_kill(c, failure);
}

void container_machine_disable_restart(ContainerMachine *c) {
        c->is_restart_disabled = true;
        if (!container_machine_has_process(c))
                container_machine_stop(c);
}

void container_machine_reset(ContainerMachine *c) {
        if (c->state != MACHINE_FINISHED)
                return;
        c->is_restart_disabled = c->stops_for_good = c->awaits_turn = false;
        c->wants_restart_all = false;
        container_machine_handle_event(c, MACHINE_EVENT_RESET);
}

void container_machine_retry_now(ContainerMachine *c, bool sandbox_is_ready) {
        if (container_machine_waits_for_image(c))
                container_machine_on_retry(c, sandbox_is_ready);
}

void container_machine_retry_references(ContainerMachine *c, bool sandbox_is_ready) {
        if (c->state == MACHINE_BACK_OFF && c->waits_for_reference)
                container_machine_on_retry(c, sandbox_is_ready);
}

void container_machine_on_image_ready(ContainerMachine *c) {
        container_machine_handle_event(c, MACHINE_EVENT_IMAGE_READY);
}

/* ImagePullBackOff: the delay doubles with each failure, and is reset when an image is present. */
static void advance_image_pull_back_off(ContainerMachine *c) {
        c->image_delay_usec = back_off_next_delay(c->image_delay_usec, c->back_off);
        c->retry_delay_usec = c->image_delay_usec;
}

void container_machine_on_image_failed(ContainerMachine *c, const char *reason,
                                       const char *message) {
        if (c->state != MACHINE_PULLING)
                return;
        container_machine_set_waiting(c, reason, message);
        advance_image_pull_back_off(c);
        container_machine_handle_event(c, MACHINE_EVENT_IMAGE_FAILED);
}

void container_machine_on_start_slot(ContainerMachine *c) {
        container_machine_handle_event(c, MACHINE_EVENT_START_SLOT);
}

void container_machine_on_started(ContainerMachine *c, unsigned attempt, uint64_t started_at) {
        if (attempt != c->attempt)
                return;
        if (c->state == MACHINE_CREATING)
                log_info("Started container '%s' (attempt %u)", c->description, attempt);
        c->attempt_is_used = true;
        c->started_at = started_at;
        (void) steady_stamp_convert(&c->running_since, &(SteadyClock){ 0 }, started_at);
        container_machine_handle_event(c, MACHINE_EVENT_STARTED);
}

void container_machine_on_retry(ContainerMachine *c, bool sandbox_is_ready) {
        container_machine_handle_event(c, sandbox_is_ready ? MACHINE_EVENT_RETRY
                                                           : MACHINE_EVENT_SANDBOX_LOST);
}

void container_machine_print_table(FILE *out) {
        (void) fprintf(out, "| |");
        for (size_t s = 0; s < N_MACHINE_STATES; s++)
                (void) fprintf(out, " %s |", machine_states[s].name);
        (void) fprintf(out, "\n|---|");
        for (size_t s = 0; s < N_MACHINE_STATES; s++)
                (void) fprintf(out, "---|");
        for (size_t e = 0; e < N_MACHINE_EVENTS; e++) {
                (void) fprintf(out, "\n| **%s** |", machine_event_names[e]);
                for (size_t s = 0; s < N_MACHINE_STATES; s++)
                        (void) fprintf(out, " %s |",
                                       machine_transitions[s][e].is_legal
                                               ? machine_states[machine_transitions[s][e].to].name
                                               : "");
        }
        (void) fprintf(out, "\n");
}
