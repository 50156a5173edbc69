/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The life of one container: an event-driven machine. Two tables say all there is to know of its
 * states and its moves; what it does to the world goes through a ContainerDriver, which pod.c is in
 * production and a recorder in tests. */

#include "agent/bundle/bundle.h"
#include "agent/model/pod.h"
#include "agent/model/status.h"
#include "agent/pods/container/restart-policy.h"
#include "common/error.h"

#include <stdio.h>
#include <sys/types.h>

typedef struct ContainerMachine ContainerMachine;

/* run() says by it that what the pod asks for contradicts what is there: the reason is
 * CreateContainerConfigError, where it is CreateContainerError else. */
#define CONTAINER_CONFIG_ERROR BUNDLE_CONFIG_ERROR

typedef enum ContainerHook {
        HOOK_POST_START,
        HOOK_PRE_STOP,
        N_CONTAINER_HOOKS,
} ContainerHook;

/* What the machine asks of the world. Each may answer at once, by one of the functions below. */
typedef struct ContainerDriver {
        void (*request_images)(void *userdata); /* → container_machine_on_image_ready / _failed */
        void (*cancel_image_request)(void *userdata); /* the request is not needed any more */
        void (*acquire_start_slot)(void *userdata);   /* → container_machine_on_start_slot */
        void (*release_start_slot)(void *userdata);
        int (*run)(void *userdata, unsigned attempt,
                   Error *reterr); /* → container_machine_on_started / …; -CONTAINER_CONFIG_ERROR */
        /* A hook of the spec's: → container_machine_on_hook_done. Asked for again, it begins anew.
         */
        void (*run_hook)(void *userdata, ContainerHook hook, unsigned attempt, bool for_good);
        void (*cancel_hook)(void *userdata);
        void (*stop)(void *userdata, unsigned attempt,
                     bool for_good);           /* → container_machine_on_exited */
        void (*shorten_grace)(void *userdata); /* the stop that is under way is for good by now */
        void (*remove_attempt)(void *userdata, unsigned attempt); /* its remains, in its own time */
        void (*arm_retry)(void *userdata, uint64_t delay_usec); /* → container_machine_on_retry */
        void (*disarm_retry)(void *userdata);
        void (*status_changed)(void *userdata); /* the status is another */
} ContainerDriver;

/* How an attempt ended, as the shim saw it. */
typedef struct ContainerExit {
        int exit_code;
        bool oom_killed;
        bool is_unknown;     /* nobody saw it: reported as such, and a failure */
        bool is_found;       /* by a new agent: whether it goes on is for the pod to say */
        uint64_t started_at; /* realtime, microseconds */
        uint64_t finished_at;
        const char *message; /* its last words, or NULL; copied */
} ContainerExit;

/* The metadata and the spec are the pod's, and outlive the container. 'waiting_reason' is what it
 * waits with unless something more exact is known: ContainerCreating, PodInitializing; not copied.
 */
int container_machine_new(const ObjectMeta *pod, const Container *spec,
                          const ContainerRestartPolicy *terms, const char *waiting_reason,
                          const BackOffLimits *back_off, const ContainerDriver *driver,
                          void *userdata, ContainerMachine **ret);
ContainerMachine *container_machine_free(ContainerMachine *container);
DEFINE_CLEANUP(ContainerMachine *, container_machine_free)

/* Wishes of the pod. */
void container_machine_start(
        ContainerMachine *container); /* the sandbox is ready; from waiting only */
void container_machine_stop(ContainerMachine *container); /* for good */

/* The spec has moved, or is another: what comes follows it, what runs may have begun by another.
 * Its name is the same. */
void container_machine_set_spec(ContainerMachine *container, const Container *spec,
                                const ContainerRestartPolicy *terms);

/* It is to run by its present spec: who runs is stopped and runs again, as another attempt; who
 * waits for something, or has ended, waits for the sandbox alone. Nothing to who is being stopped
 * for good. */
void container_machine_restart_edited(ContainerMachine *container);

/* What made it fail may be gone: it does not wait any longer. */
void container_machine_reset_back_off(ContainerMachine *container);

/* Ends the present attempt, if it runs and is not being stopped; what follows is the policy's to
 * say, but a success is none. 'why' is its last word where it has none of its own. */
bool container_machine_can_be_killed(const ContainerMachine *container);
void container_machine_kill(ContainerMachine *container, const char *why);

/* Who runs may run on, but is not started any more. */
void container_machine_disable_restart(ContainerMachine *container);

/* It is finished, and waits to be started once more. */
void container_machine_reset(ContainerMachine *container);

/* No need to sit out a wait for an image. */
void container_machine_retry_now(ContainerMachine *container, bool sandbox_is_ready);

/* What its variables refer to may be there now: whoever waits for that tries again. */
void container_machine_retry_references(ContainerMachine *container, bool sandbox_is_ready);

/* News. Those about another attempt than the present one are ignored. */
void container_machine_on_image_ready(ContainerMachine *container);
void container_machine_on_image_failed(ContainerMachine *container, const char *reason,
                                       const char *message);
void container_machine_on_start_slot(ContainerMachine *container);
void container_machine_on_started(ContainerMachine *container, unsigned attempt,
                                  uint64_t started_at);
void container_machine_on_start_failed(ContainerMachine *container, unsigned attempt,
                                       bool by_runtime, const char *message);
void container_machine_on_exited(ContainerMachine *container, unsigned attempt,
                                 const ContainerExit *end);

/* 'failure' is NULL where it went well. After a postStart that did not the container is killed. */
void container_machine_on_hook_done(ContainerMachine *container, const char *failure);
void container_machine_on_retry(ContainerMachine *container, bool sandbox_is_ready);
void container_machine_on_sandbox_lost(ContainerMachine *container, uint64_t now);

/* After a restart of the agent: the present attempt. What came of it follows as news. Attempts
 * before it have left nothing. */
void container_machine_adopt(ContainerMachine *container, unsigned attempt,
                             uint64_t next_delay_usec);

/* After a restart of the agent: no shim knows of it, but it has run up to 'attempt'. That is an end
 * that nobody saw, and the policy says what follows. Nothing to who knows of an attempt already. */
void container_machine_recover(ContainerMachine *container, unsigned attempt, uint64_t now);

/* The same where it is known how that attempt ended: the policy said that nothing follows. */
void container_machine_recover_exit(ContainerMachine *container, unsigned attempt,
                                    const ContainerExit *end, const char *reason);

/* After a restart of the agent: its postStart hook need not be run again. */
void container_machine_adopt_post_started(ContainerMachine *container);

/* After a restart of the agent: the present attempt was told to end, not for good. */
void container_machine_adopt_killed(ContainerMachine *container);

/* After a restart of the agent: the shim is creating the present attempt right now. */
void container_machine_adopt_creating(ContainerMachine *container);

/* After a restart of the agent: how the attempt before the present one ended. */
void container_machine_adopt_last(ContainerMachine *container, unsigned attempt,
                                  const ContainerExit *end);

/* Questions. */
unsigned container_machine_attempt(const ContainerMachine *container);
/* The present attempt is none that is yet to come, and not later than this one. */
bool container_machine_has_run(const ContainerMachine *container, unsigned attempt);
bool container_machine_has_any_attempt(
        const ContainerMachine *container); /* any attempt of it has */
uint64_t container_machine_next_delay(
        const ContainerMachine *container); /* travels with the attempt as its note */
bool container_machine_has_process(const ContainerMachine *container);
bool container_machine_is_running(const ContainerMachine *container); /* it has started */
bool container_machine_is_up(
        const ContainerMachine *container); /* and its postStart hook is done */
bool container_machine_is_stopping(const ContainerMachine *container);
bool container_machine_is_killed(
        const ContainerMachine *container); /* see container_machine_kill() */
bool container_machine_has_post_started(const ContainerMachine *container);
uint64_t container_machine_started_at(const ContainerMachine *container); /* realtime */
bool container_machine_is_finished(const ContainerMachine *container);
const char *container_machine_waiting_reason(
        const ContainerMachine *container);                              /* were it waiting */
bool container_machine_has_succeeded(const ContainerMachine *container); /* finished, with 0 */
/* How it ended, if it has finished; or NULL. */
const ContainerState *container_machine_terminated_state(const ContainerMachine *container);
uint64_t container_machine_finished_at(
        const ContainerMachine *container); /* realtime; 0: it never ended */

/* It runs, and what comes after it in the pod's order may begin. */
bool container_machine_has_started(const ContainerMachine *container);

/* Its end is one after which all containers are restarted, after what is left of the delay. */
bool container_machine_wants_restart_all(const ContainerMachine *container,
                                         uint64_t *ret_delay_usec);
bool container_machine_waits_for_image(const ContainerMachine *container);
bool container_machine_is_waiting(
        const ContainerMachine *container); /* for container_machine_start() */
bool container_machine_is_in_back_off(
        const ContainerMachine *container); /* after an end or a failure */

/* Fills in 'ret' (zeroed before); what the pod knows better, it adds. 0 or -ENOMEM. */
int container_machine_status(const ContainerMachine *container, const char *uid,
                             ContainerStatus *ret);

/* Prints the table of moves as Markdown, as agent/README.md has it. */
void container_machine_print_table(FILE *out);
