/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of a container's life share: container.c is the machine, container-ends.c says
 * what follows an end, container-adopt.c brings it to where a container is that was found,
 * container-questions.c and container-status.c tell where it is. Nobody else includes this. */

#include "agent/pods/container/container-machine.h"

typedef enum ContainerMachineState {
        MACHINE_IDLE,
        MACHINE_PULLING,
        MACHINE_QUEUED,
        MACHINE_CREATING,
        MACHINE_POST_START,
        MACHINE_RUNNING,
        MACHINE_PRE_STOP,
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
        MACHINE_EVENT_RESET,
        MACHINE_EVENT_EDIT,
        N_MACHINE_EVENTS,
} ContainerMachineEvent;

/* What is so in a state, whatever led to it. */
typedef struct MachineStateFacts {
        const char *name;
        ContainerStateKind api_state;
        const char *reason; /* waiting, where the pod's own does not do */
        bool has_process;
        bool uses_image_request;
        bool uses_start_slot;
        bool uses_retry;
        bool uses_hook;
        bool may_fail_to_start;
        bool may_end;
} MachineStateFacts;

extern const MachineStateFacts machine_state_facts[N_MACHINE_STATES];

struct ContainerMachine {
        char *description; /* "default/web-node1/nginx", for log lines */
        const ObjectMeta *pod;
        const Container *spec; /* the pod's */
        ContainerRestartPolicy terms;
        const char *default_waiting_reason; /* to wait with, where nothing more exact is known */
        const BackOffLimits *back_off;
        const ContainerDriver *driver;
        void *userdata;

        ContainerMachineState state;
        unsigned attempt;
        unsigned oldest_remains; /* attempts from here to the present one may have remains */
        bool attempt_is_used;
        bool restarts_when_stopped; /* being stopped, so that it can begin by another spec */
        bool is_restart_disabled;   /* not started any more */
        bool wants_restart_all;     /* it ended so that all containers are restarted */
        uint64_t started_at;
        bool has_post_started; /* its hook was run, or there is none */
        bool stops_for_good;
        bool is_killed;           /* the present attempt, not for good */
        char *kill_message;       /* why */
        char *post_start_failure; /* that it is killed for, as the status has it */
        uint64_t retry_delay_usec;
        uint64_t next_delay_usec;  /* of the crash back-off */
        uint64_t image_delay_usec; /* of the image back-off */
        bool waits_for_reference;  /* for an object that its variables name */
        char *waiting_reason;      /* overrides the state's */
        char *waiting_message;
        ContainerState terminated;      /* the present attempt, once it ended */
        ContainerState last_terminated; /* the one before */
};

/* The one writer of the state. */
void container_machine_set_state(ContainerMachine *c, ContainerMachineState state);

/* The one door of the machine: what an event means is in its table. */
void container_machine_handle_event(ContainerMachine *c, ContainerMachineEvent event);

/* Reason and message of who waits, in the place of his state's; both may be NULL. */
void container_machine_set_waiting(ContainerMachine *c, const char *reason, const char *message);

/* What the runtime refuses will never run by itself: StartError and 128, as container engines say
 * it; what came before the runtime is tried again, whatever the policy. */
void container_machine_start_failed(ContainerMachine *c, bool by_runtime, const char *reason,
                                    const char *message);

/* How the present attempt ended; the texts are copied, and the message may be NULL. */
void container_machine_record_exit(ContainerMachine *c, const ContainerExit *end,
                                   const char *reason, const char *message);

/* The same of an end that nobody saw, and what follows. */
void container_machine_on_unseen_exit(ContainerMachine *c, const ContainerExit *end,
                                      const char *message);

/* Of a delay that counts from an end, however late that is heard of. */
uint64_t container_remaining_back_off(uint64_t delay_usec, uint64_t finished_at);
