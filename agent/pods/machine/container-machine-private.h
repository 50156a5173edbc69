/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The container state machine's own struct, shared by its files: container-machine.c contains the
 * states and transitions, container-exit.c handles the end of an attempt, container-adopt.c adopts
 * attempts after a restart of the agent, container-queries.c, container-status.c and
 * container-dump.c contain the queries. No other file includes this. */

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
        const char *reason; /* reason of the waiting state, if it does not come from the pod */
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
        const char *default_waiting_reason; /* used if no more specific one is known */
        const BackOffLimits *back_off;
        const ContainerDriver *driver;
        void *userdata;

        ContainerMachineState state;
        unsigned attempt;
        unsigned oldest_remains; /* the earliest attempt that may have left remains */
        bool attempt_is_used;
        bool restarts_when_stopped; /* being stopped, to run again with a new spec */
        bool is_restart_disabled;   /* it is not started again */
        bool wants_restart_all;     /* a restart rule requests all containers */
        bool is_interrupted;        /* it was stopped, or would have been restarted */
        uint64_t started_at;
        SteadyStamp running_since; /* not affected by setting the clock */
        bool has_post_started;     /* its postStart hook has ended, or there is none */
        bool stops_for_good;
        bool awaits_turn;         /* being stopped, but the stop signal waits until other containers
                                   * have ended */
        bool is_killed;           /* the current attempt is being killed, not permanently */
        char *kill_message;       /* why */
        char *post_start_failure; /* message for the status if it is killed because of this */
        uint64_t retry_delay_usec;
        uint64_t next_delay_usec;  /* for the crash back-off */
        uint64_t image_delay_usec; /* for the image back-off */
        bool waits_for_reference;  /* waits for an object to which its environment refers */
        char *waiting_reason;      /* overrides the state's reason */
        char *waiting_message;
        ContainerState terminated;      /* of the current attempt, once it has ended */
        ContainerState last_terminated; /* of the latest earlier attempt that has ended */
        unsigned last_attempt;          /* its number */
};

/* 'terminated' describes an attempt before the current one. If that attempt never ran, the last
 * state is kept. */
void container_machine_keep_as_last(ContainerMachine *c, unsigned attempt);

/* The only writer of the state. */
void container_machine_set_state(ContainerMachine *c, ContainerMachineState state);

/* All changes of state are made here: the table contains the effect of each event. */
void container_machine_handle_event(ContainerMachine *c, ContainerMachineEvent event);

/* Sets reason and message of the waiting state, instead of the state's own; both may be NULL. */
void container_machine_set_waiting(ContainerMachine *c, const char *reason, const char *message);

/* A container that the runtime cannot start will never run without a change: StartError and 128,
 * as in container engines. A failure before the runtime is called is retried, regardless of the
 * restart policy. */
void container_machine_start_failed(ContainerMachine *c, bool by_runtime, const char *reason,
                                    const char *message);

/* Records the end of the current attempt. The strings are copied; the message may be NULL. */
void container_machine_record_exit(ContainerMachine *c, const ContainerExit *end,
                                   const char *reason, const char *message);

/* Records an end that was not observed, and applies the restart policy. */
void container_machine_on_unseen_exit(ContainerMachine *c, const ContainerExit *end,
                                      const char *message);

/* The rest of a delay that starts at the end of an attempt, even if that end is reported late. */
uint64_t container_remaining_back_off(uint64_t delay_usec, uint64_t finished_at);
