/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The container state machine's own struct, shared by its files: container-machine.c has the states
 * and transitions, container-exit.c the consequences of the end of an attempt, container-adopt.c
 * the adoption after a restart of the agent, container-queries.c, container-status.c and
 * container-dump.c the queries. No other file includes this. */

#include "agent/pods/machine/container-machine.h"
#include "common/clock.h"

typedef enum ContainerMachineState {
        MACHINE_IDLE,
        MACHINE_PULLING,
        MACHINE_QUEUED,
        MACHINE_CREATING,
        MACHINE_POST_START,
        MACHINE_RUNNING,
        MACHINE_PRE_STOP,
        MACHINE_AWAITING_TURN,
        MACHINE_STOPPING,
        MACHINE_BACK_OFF,
        MACHINE_FINISHED,
        N_MACHINE_STATES,
} ContainerMachineState;

typedef enum ContainerMachineEvent {
        MACHINE_EVENT_START,
        MACHINE_EVENT_IMAGE_READY,
        MACHINE_EVENT_IMAGE_FAILED,
        MACHINE_EVENT_START_SLOT,
        MACHINE_EVENT_STARTED,
        MACHINE_EVENT_HOOK_DONE,
        MACHINE_EVENT_START_FAILED,
        MACHINE_EVENT_RESTART,
        MACHINE_EVENT_BACK_OFF,
        MACHINE_EVENT_DONE,
        MACHINE_EVENT_RETRY,
        MACHINE_EVENT_SANDBOX_LOST,
        MACHINE_EVENT_KILL,
        MACHINE_EVENT_STOP,
        MACHINE_EVENT_TURN,
        MACHINE_EVENT_RESET,
        MACHINE_EVENT_EDIT,
        N_MACHINE_EVENTS,
} ContainerMachineEvent;

/* The properties of a state, regardless of how it was entered. */
typedef struct MachineStateInfo {
        const char *name;
        ContainerStateKind api_state;
        const char *reason; /* of waiting, if it is not the pod's */
        bool has_process;
        bool uses_image_request;
        bool uses_start_slot;
        bool uses_retry;
        bool uses_hook;
        bool may_fail_to_start;
        bool may_end;
} MachineStateInfo;

extern const MachineStateInfo machine_states[N_MACHINE_STATES];

struct ContainerMachine {
        char *description; /* "default/web-node1/nginx", for log lines */
        const ObjectMeta *pod;
        const Container *spec; /* the pod's */
        ContainerRestartPolicy terms;
        const char *default_waiting_reason; /* if no more exact one is known */
        const BackOffLimits *back_off;
        const ContainerDriver *driver;
        void *userdata;

        ContainerMachineState state;
        unsigned attempt;
        unsigned oldest_remains; /* the first attempt of which there may be remains */
        bool attempt_is_used;
        bool restarts_when_stopped; /* being stopped, to run again by a new spec */
        bool is_restart_disabled;   /* it is not started again */
        bool wants_restart_all;     /* a restart rule requests all containers */
        bool is_interrupted;        /* its end is that of a stop, or a restart was to follow */
        uint64_t started_at;
        SteadyStamp running_since; /* the same as boot time: setting the clock does not move it */
        bool has_post_started;     /* its postStart hook has ended, or there is none */
        bool stops_for_good;
        bool awaits_turn;         /* being stopped, but others have to end before its stop signal */
        bool is_killed;           /* the current attempt, not permanently */
        char *kill_message;       /* why */
        char *post_start_failure; /* the status' message if it is killed for it */
        uint64_t retry_delay_usec;
        uint64_t next_delay_usec;  /* of the crash back-off */
        uint64_t image_delay_usec; /* of the image back-off */
        bool waits_for_reference;  /* for an object that its environment refers to */
        char *waiting_reason;      /* overrides the state's */
        char *waiting_message;
        ContainerState terminated;      /* the present attempt, once it ended */
        ContainerState last_terminated; /* the latest one before that has ended */
        unsigned last_attempt;          /* its number */
};

/* 'terminated' describes an attempt before the current one. If that never ran, the last state
 * stays. */
void container_machine_keep_as_last(ContainerMachine *c, unsigned attempt);

/* The one writer of the state. */
void container_machine_set_state(ContainerMachine *c, ContainerMachineState state);

/* Every change of state is made here: the table has the effect of each event. */
void container_machine_handle_event(ContainerMachine *c, ContainerMachineEvent event);

/* Reason and message of waiting, in place of the state's; both may be NULL. */
void container_machine_set_waiting(ContainerMachine *c, const char *reason, const char *message);

/* A container that the runtime refuses never runs by itself: StartError and 128, like in container
 * engines. A failure before the runtime is tried again, regardless of the restart policy. */
void container_machine_start_failed(ContainerMachine *c, bool by_runtime, const char *reason,
                                    const char *message);

/* Records the end of the present attempt. The strings are copied; the message may be NULL. */
void container_machine_record_exit(ContainerMachine *c, const ContainerExit *end,
                                   const char *reason, const char *message);

/* Records an end that was not observed, and applies the restart policy. */
void container_machine_on_unseen_exit(ContainerMachine *c, const ContainerExit *end,
                                      const char *message);

/* The rest of a delay that counts from an end, even if that end is reported late. */
uint64_t container_remaining_back_off(uint64_t delay_usec, uint64_t finished_at);
