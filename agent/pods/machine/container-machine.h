/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The state machine of one container: events in, effects out through a ContainerDriver, which is
 * pod-container.c in the agent and a recorder in tests. Two tables contain its states and its
 * transitions. */

#include "agent/bundle/bundle.h"
#include "agent/model/pod.h"
#include "agent/model/status.h"
#include "agent/pods/machine/restart-policy.h"
#include "common/error.h"

#include <stdio.h>
#include <sys/types.h>

typedef struct ContainerMachine ContainerMachine;

/* Result of run() if the spec does not fit the node: the reason is CreateContainerConfigError
 * instead of CreateContainerError. */
#define CONTAINER_CONFIG_ERROR BUNDLE_CONFIG_ERROR
#define CONTAINER_AWAITED      BUNDLE_AWAITED /* likewise */

/* CreateContainerError; a changed CDI specification may resolve it. */
#define CONTAINER_DEVICE_MISSING BUNDLE_DEVICE_MISSING

typedef enum LifecycleHook {
        HOOK_POST_START,
        HOOK_PRE_STOP,
        N_LIFECYCLE_HOOKS,
} LifecycleHook;

/* The requests of the machine. Each may be answered immediately, with one of the functions
 * below. */
typedef struct ContainerDriver {
        void (*request_images)(void *userdata); /* → container_machine_on_image_ready / _failed */
        void (*cancel_image_request)(void *userdata); /* the request is no longer needed */
        void (*acquire_start_slot)(void *userdata);   /* → container_machine_on_start_slot */
        void (*release_start_slot)(void *userdata);
        int (*run)(void *userdata, unsigned attempt,
                   Error *reterr); /* → container_machine_on_started / …; -CONTAINER_CONFIG_ERROR */
        /* Runs a hook of the spec: → container_machine_on_hook_done. A second call starts it
         * again. */
        void (*run_hook)(void *userdata, LifecycleHook hook, unsigned attempt, bool for_good);
        void (*cancel_hook)(void *userdata);
        void (*stop)(void *userdata, unsigned attempt,
                     bool for_good);           /* → container_machine_on_exited */
        void (*shorten_grace)(void *userdata); /* the current stop has become permanent: the pod's
                                                * grace period applies */
        void (*remove_attempt)(void *userdata, unsigned attempt); /* removes its remains,
                                                                   * asynchronously */
        void (*arm_retry)(void *userdata, uint64_t delay_usec); /* → container_machine_on_retry */
        void (*disarm_retry)(void *userdata);
        void (*status_changed)(void *userdata); /* the status has changed */
} ContainerDriver;

/* How an attempt ended, as observed by the shim. */
typedef struct ContainerExit {
        int exit_code;
        bool oom_killed;
        bool is_unknown;     /* not observed: reported as unknown, and counted as a failure */
        bool is_found;       /* found by a restarted agent: the pod decides whether it continues */
        uint64_t started_at; /* realtime, microseconds */
        uint64_t finished_at;
        const char *message; /* the termination message, or NULL; copied */
} ContainerExit;

/* Metadata and spec belong to the pod, and outlive the container. 'waiting_reason'
 * (ContainerCreating, PodInitializing) is used while no more specific one is known; not copied.
 */
int container_machine_new(const ObjectMeta *pod, const Container *spec,
                          const ContainerRestartPolicy *terms, const char *waiting_reason,
                          const BackOffLimits *back_off, const ContainerDriver *driver,
                          void *userdata, ContainerMachine **ret);
ContainerMachine *container_machine_free(ContainerMachine *container);
DEFINE_CLEANUP(ContainerMachine *, container_machine_free)

/* Requests of the pod. */
void container_machine_start(
        ContainerMachine *container); /* the sandbox is ready; only from waiting */
void container_machine_stop(ContainerMachine *container); /* permanently */

/* Also stops the container permanently, but only the preStop hook runs now: the stop signal waits
 * for container_machine_stop(). */
void container_machine_stop_in_turn(ContainerMachine *container);

/* The spec was moved or changed, except for its name. The running attempt may have been started
 * with the old one. */
void container_machine_set_spec(ContainerMachine *container, const Container *spec,
                                const ContainerRestartPolicy *terms);

/* Restarts it with its current spec: a running container is stopped and runs again as a new
 * attempt; a waiting or ended one only waits for the sandbox. Does nothing if it is being stopped
 * permanently. */
void container_machine_restart_edited(ContainerMachine *container);

/* Ends the back-off of the container, because the cause of its failures may have been removed. */
void container_machine_reset_back_off(ContainerMachine *container);

/* Kills the current attempt, if it is running and not being stopped; the restart policy decides
 * about the next step, and exit code 0 counts as a failure. 'why' is the termination message if the
 * container does not write one. */
bool container_machine_can_be_killed(const ContainerMachine *container);
void container_machine_kill(ContainerMachine *container, const char *why);

/* The container continues to run, but is never started again. */
void container_machine_disable_restart(ContainerMachine *container);

/* Makes a container that has finished wait to be started again. */
void container_machine_reset(ContainerMachine *container);

/* Ends the back-off for an image. */
void container_machine_retry_now(ContainerMachine *container, bool sandbox_is_ready);

/* Objects to which the container's environment refers may exist now: if it waits for one, it tries
 * again. */
void container_machine_retry_references(ContainerMachine *container, bool sandbox_is_ready);

/* Events. Those of attempts other than the current one are ignored. */
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

/* 'failure' is NULL on success. A failed postStart hook kills the container. */
void container_machine_on_hook_done(ContainerMachine *container, const char *failure);
void container_machine_on_retry(ContainerMachine *container, bool sandbox_is_ready);
void container_machine_on_sandbox_lost(ContainerMachine *container, uint64_t now);

/* After a restart of the agent: sets the current attempt, whose events follow. Earlier attempts
 * have left nothing behind. */
void container_machine_adopt(ContainerMachine *container, unsigned attempt,
                             uint64_t next_delay_usec);

/* After a restart of the agent: no shim has the container, but it has run up to 'attempt'. Its end
 * was not observed; the restart policy decides about the next step. Does nothing if an attempt is
 * already known. */
void container_machine_recover(ContainerMachine *container, unsigned attempt, uint64_t now);

/* The same, if the end of that attempt is known and no other attempt follows. False: an attempt was
 * already known. */
bool container_machine_recover_exit(ContainerMachine *container, unsigned attempt,
                                    const ContainerExit *end, const char *reason);

/* To be called after container_machine_recover_exit(): how the previous attempt ended. */
void container_machine_recover_last(ContainerMachine *container, const ContainerExit *end,
                                    const char *reason);

/* After a restart of the agent: its postStart hook has ended. */
void container_machine_adopt_post_started(ContainerMachine *container);

/* After a restart of the agent: the current attempt is being killed, not permanently. */
void container_machine_adopt_killed(ContainerMachine *container);

/* After a restart of the agent: the shim is creating the current attempt. */
void container_machine_adopt_creating(ContainerMachine *container);

/* After a restart of the agent: how the attempt before the current one ended. */
void container_machine_adopt_last(ContainerMachine *container, unsigned attempt,
                                  const ContainerExit *end);

/* Queries. */
unsigned container_machine_attempt(const ContainerMachine *container);
/* Whether the current attempt was started, and is not later than 'attempt'. */
bool container_machine_has_run(const ContainerMachine *container, unsigned attempt);
bool container_machine_has_any_attempt(
        const ContainerMachine *container); /* whether any attempt was started */
uint64_t container_machine_next_delay(const ContainerMachine *container); /* in crash back-off */
bool container_machine_has_process(const ContainerMachine *container);
bool container_machine_is_creating(
        const ContainerMachine *container); /* the runtime is starting an attempt */
bool container_machine_is_running(const ContainerMachine *container); /* it is running */
bool container_machine_is_up(
        const ContainerMachine *container); /* it is running, and its postStart hook is done */
bool container_machine_is_stopping(const ContainerMachine *container);
/* Whether it is being stopped without a stop signal so far: its preStop hook is running, or it
 * awaits its turn. */
bool container_machine_holds_stop_signal(const ContainerMachine *container);
bool container_machine_is_killed(
        const ContainerMachine *container); /* see container_machine_kill() */
bool container_machine_has_post_started(const ContainerMachine *container);

/* How long the current attempt has been running, independent of changes of the clock; 0 before it
 * runs. */
uint64_t container_machine_running_usec(const ContainerMachine *container);
bool container_machine_is_finished(const ContainerMachine *container);
const char *container_machine_waiting_reason(
        const ContainerMachine *container);                              /* of the waiting state */
bool container_machine_has_succeeded(const ContainerMachine *container); /* it has finished with
                                                                          * exit code 0 */
/* How it ended, if it has finished; otherwise NULL. */
const ContainerState *container_machine_terminated_state(const ContainerMachine *container);
/* How the attempt before the current one ended; NULL: unknown. */
const ContainerState *container_machine_last_state(const ContainerMachine *container);

/* The attempt that is the lastState in the status. False: there is none. */
bool container_machine_last_attempt(const ContainerMachine *container, unsigned *ret_attempt);

/* Whether it has finished only because it was stopped, or to be restarted, and would otherwise be
 * running. */
bool container_machine_was_interrupted(const ContainerMachine *container);

/* Whether the attempt that has finished is the last one, even if the machine is started again: it
 * had completed, or was stopped and its policy is Never. */
bool container_machine_end_is_final(const ContainerMachine *container);
uint64_t container_machine_finished_at(
        const ContainerMachine *container); /* realtime; 0: it never ended */

/* Whether the container is running, and the next container in the pod's order may start. */
bool container_machine_has_started(const ContainerMachine *container);

/* Whether the container's postStart hook is running, or will run once the container has started;
 * false while the container waits after a failure. */
bool container_machine_awaits_post_start(const ContainerMachine *container);

/* Whether a restart rule requests a restart of all containers, after the rest of the delay. */
bool container_machine_wants_restart_all(const ContainerMachine *container,
                                         uint64_t *ret_delay_usec);
bool container_machine_waits_for_image(const ContainerMachine *container);
bool container_machine_is_waiting(
        const ContainerMachine *container); /* for container_machine_start() */
bool container_machine_is_in_back_off(
        const ContainerMachine *container); /* after it has ended or failed */

/* Fills in 'ret', which must be zeroed; the pod adds the details that only the pod has. 0 or
 * -ENOMEM. */
int container_machine_status(const ContainerMachine *container, const char *uid,
                             ContainerStatus *ret);

/* Prints state and back-off for `mainstay debug dump`. */
void container_machine_dump(const ContainerMachine *container, FILE *out);

/* Prints the table of transitions as Markdown, for agent/pods/README.md. */
void container_machine_print_table(FILE *out);
