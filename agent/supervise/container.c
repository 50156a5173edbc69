/* SPDX-License-Identifier: Apache-2.0 */
/* The machine. Facts about states stand in one table, legal moves in a second; what an end means is
 * container-ends.c's to say; effects are the enter_…() functions; container_set_state() alone
 * writes the state.
 *
 * An attempt is one run of the container: its number is the restart count, the name of its log and
 * part of its ID. A number is used up when the shim was asked to run it, whatever came of it. */

#include "agent/supervise/container-internal.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "common/log.h"

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

static void enter_creating(ContainerLife *c) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        c->started_at = 0;
        r = c->driver->run(c->userdata, c->attempt, &error);
        if (r >= 0) {
                c->attempt_is_used = true;
                return;
        }
        container_start_failed(c, /* by_runtime= */ false,
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
                container_handle(c, EVENT_HOOK_DONE);
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
                container_handle(c, EVENT_HOOK_DONE);
        else
                c->driver->run_hook(c->userdata, HOOK_PRE_STOP, c->attempt, c->stops_for_good);
}

/* It was only killed, with a grace of its own; now it is stopped for good. */
static void enter_hurried(ContainerLife *c) {
        c->driver->hurry(c->userdata);
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
                container_handle(c, EVENT_EDIT);
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
                [EVENT_STOP]         = MOVE(PRE_STOP, enter_hurried), /* the hook goes on, for no longer than that */
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

void container_set_waiting(ContainerLife *c, const char *reason, const char *message) {
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
                container_set_waiting(c, NULL, NULL);
        c->waits_for_reference = false;
        c->state = state;
        log_debug("'%s': %s -> %s", c->description, life_facts[old].name, life_facts[state].name);
        c->driver->changed(c->userdata);
}

void container_handle(ContainerLife *c, Event event) {
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
        container_set_waiting(c, NULL, NULL);
        container_state_done(&c->ended);
        container_state_done(&c->ended_last);
        free(c->kill_message);
        free(c->post_start_failure);
        free(c->description);
        free(c);
        return NULL;
}

void container_start(ContainerLife *c) {
        container_handle(c, EVENT_START);
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
                container_handle(c, EVENT_EDIT);
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
                container_handle(c, EVENT_STOP);
}

bool container_may_be_killed(const ContainerLife *c) {
        return moves[c->state][EVENT_KILL].is_legal;
}

void container_kill(ContainerLife *c, const char *why) {
        if (!container_may_be_killed(c))
                return;
        c->is_killed = true;
        set_text(&c->kill_message, why);
        container_handle(c, EVENT_KILL);
}

void container_on_hook_done(ContainerLife *c, const char *failure) {
        if (c->state != LIFE_POST_START || !failure) {
                container_handle(c, EVENT_HOOK_DONE);
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
        container_handle(c, EVENT_AGAIN);
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
        container_handle(c, EVENT_IMAGE_READY);
}

void container_on_image_failed(ContainerLife *c, const char *reason, const char *message) {
        if (c->state != LIFE_PULLING)
                return;
        container_set_waiting(c, reason, message);
        c->image_delay_usec = back_off_next(c->image_delay_usec, c->back_off);
        c->retry_delay_usec = c->image_delay_usec;
        container_handle(c, EVENT_IMAGE_FAILED);
}

void container_on_turn(ContainerLife *c) {
        container_handle(c, EVENT_TURN);
}

void container_on_started(ContainerLife *c, unsigned attempt, uint64_t started_at) {
        if (attempt != c->attempt)
                return;
        if (c->state == LIFE_CREATING)
                log_info("Container '%s' runs, attempt %u", c->description, attempt);
        c->attempt_is_used = true;
        c->started_at = started_at;
        container_handle(c, EVENT_STARTED);
}

void container_on_retry(ContainerLife *c, bool sandbox_is_ready) {
        container_handle(c, sandbox_is_ready ? EVENT_RETRY : EVENT_SANDBOX_GONE);
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
