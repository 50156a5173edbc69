/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of a container's life share: container.c is the machine, container-ends.c says
 * what follows an end, container-adopt.c brings it to where a container is that was found,
 * container-questions.c and container-status.c tell where it is. Nobody else includes this. */

#include "agent/supervise/container.h"

typedef enum LifeState {
        LIFE_IDLE,
        LIFE_PULLING,
        LIFE_QUEUED,
        LIFE_CREATING,
        LIFE_POST_START,
        LIFE_UP,
        LIFE_PRE_STOP,
        LIFE_STOPPING,
        LIFE_BACK_OFF,
        LIFE_FINISHED,
        N_LIFE_STATES,
} LifeState;

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

/* What is so in a state, whatever led to it. */
typedef struct LifeFacts {
        const char *name;
        ContainerStateKind kube;
        const char *reason; /* waiting, where the pod's own does not do */
        bool has_process;
        bool uses_image_request;
        bool uses_turn;
        bool uses_retry;
        bool uses_hook;
        bool may_fail_to_start;
        bool may_end;
} LifeFacts;

extern const LifeFacts life_facts[N_LIFE_STATES];

struct ContainerLife {
        char *description; /* "default/web-node1/nginx", for log lines */
        const ObjectMeta *pod;
        const Container *spec; /* the pod's */
        RestartTerms terms;
        const char *idle_reason; /* to wait with, where nothing more exact is known */
        const BackOff *back_off;
        const ContainerDriver *driver;
        void *userdata;

        LifeState state;
        unsigned attempt;
        unsigned oldest_remains; /* attempts from here to the present one may have remains */
        bool attempt_is_used;
        bool runs_again; /* being stopped, so that it can begin by another spec */
        bool is_retired; /* not started any more */
        bool wants_all;  /* it ended so that all containers are restarted */
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
        ContainerState ended;      /* the present attempt, once it ended */
        ContainerState ended_last; /* the one before */
};

/* The one writer of the state. */
void container_set_state(ContainerLife *c, LifeState state);

/* The one door of the machine: what an event means is in its table. */
void container_handle(ContainerLife *c, Event event);

/* Reason and message of who waits, in the place of his state's; both may be NULL. */
void container_set_waiting(ContainerLife *c, const char *reason, const char *message);

/* What the runtime refuses will never run by itself: StartError and 128, as container engines say
 * it; what came before the runtime is tried again, whatever the policy. */
void container_start_failed(ContainerLife *c, bool by_runtime, const char *reason,
                            const char *message);

/* How the present attempt ended; the texts are copied, and the message may be NULL. */
void container_record_end(ContainerLife *c, const ContainerExit *end, const char *reason,
                          const char *message);

/* The same of an end that nobody saw, and what follows. */
void container_end_unseen(ContainerLife *c, const ContainerExit *end, const char *message);

/* Of a delay that counts from an end, however late that is heard of. */
uint64_t container_remaining_delay(uint64_t delay_usec, uint64_t finished_at);
