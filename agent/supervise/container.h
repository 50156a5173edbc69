/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The life of one container: an event-driven machine. Two tables say all there is to know of its
 * states and its moves; what it does to the world goes through a ContainerDriver, which pod.c is in
 * production and a recorder in tests. */

#include "agent/bundle/bundle.h"
#include "agent/model/pod.h"
#include "agent/model/status.h"
#include "agent/supervise/decide.h"
#include "common/error.h"

#include <stdio.h>
#include <sys/types.h>

typedef struct ContainerLife ContainerLife;

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
        void (*get_image)(void *userdata);  /* → container_on_image_ready / _failed */
        void (*drop_image)(void *userdata); /* the request is not needed any more */
        void (*ask_turn)(void *userdata);   /* → container_on_turn */
        void (*leave_turn)(void *userdata);
        int (*run)(void *userdata, unsigned attempt,
                   Error *reterr); /* → container_on_started / …; -CONTAINER_CONFIG_ERROR */
        /* A hook of the spec's: → container_on_hook_done. Asked for again, it begins anew. */
        void (*run_hook)(void *userdata, ContainerHook hook, unsigned attempt, bool for_good);
        void (*drop_hook)(void *userdata);
        void (*stop)(void *userdata, unsigned attempt, bool for_good); /* → container_on_exited */
        void (*hurry)(void *userdata); /* the stop that is under way is for good by now */
        void (*remove)(void *userdata, unsigned attempt);       /* its remains, in its own time */
        void (*arm_retry)(void *userdata, uint64_t delay_usec); /* → container_on_retry */
        void (*disarm_retry)(void *userdata);
        void (*changed)(void *userdata); /* the status is another */
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
int container_new(const ObjectMeta *pod, const Container *spec, const RestartTerms *terms,
                  const char *waiting_reason, const BackOff *back_off,
                  const ContainerDriver *driver, void *userdata, ContainerLife **ret);
ContainerLife *container_free(ContainerLife *container);
DEFINE_CLEANUP(ContainerLife *, container_free)

/* Wishes of the pod. */
void container_start(ContainerLife *container); /* the sandbox is ready; from waiting only */
void container_stop(ContainerLife *container);  /* for good */

/* The spec has moved, or is another: what comes follows it, what runs may have begun by another.
 * Its name is the same. */
void container_set_spec(ContainerLife *container, const Container *spec, const RestartTerms *terms);

/* It is to run by its present spec: who runs is stopped and runs again, as another attempt; who
 * waits for something, or has ended, waits for the sandbox alone. Nothing to who is being stopped
 * for good. */
void container_edit(ContainerLife *container);

/* What made it fail may be gone: it does not wait any longer. */
void container_forgive(ContainerLife *container);

/* Ends the present attempt, if it runs and is not being stopped; what follows is the policy's to
 * say, but a success is none. 'why' is its last word where it has none of its own. */
bool container_may_be_killed(const ContainerLife *container);
void container_kill(ContainerLife *container, const char *why);

/* Who runs may run on, but is not started any more. */
void container_retire(ContainerLife *container);

/* It is finished, and waits to be started once more. */
void container_again(ContainerLife *container);

/* No need to sit out a wait for an image. */
void container_retry_now(ContainerLife *container, bool sandbox_is_ready);

/* What its variables refer to may be there now: whoever waits for that tries again. */
void container_retry_references(ContainerLife *container, bool sandbox_is_ready);

/* News. Those about another attempt than the present one are ignored. */
void container_on_image_ready(ContainerLife *container);
void container_on_image_failed(ContainerLife *container, const char *reason, const char *message);
void container_on_turn(ContainerLife *container);
void container_on_started(ContainerLife *container, unsigned attempt, uint64_t started_at);
void container_on_start_failed(ContainerLife *container, unsigned attempt, bool by_runtime,
                               const char *message);
void container_on_exited(ContainerLife *container, unsigned attempt, const ContainerExit *end);

/* 'failure' is NULL where it went well. After a postStart that did not the container is killed. */
void container_on_hook_done(ContainerLife *container, const char *failure);
void container_on_retry(ContainerLife *container, bool sandbox_is_ready);
void container_on_sandbox_lost(ContainerLife *container, uint64_t now);

/* After a restart of the agent: the present attempt. What came of it follows as news. Attempts
 * before it have left nothing. */
void container_adopt(ContainerLife *container, unsigned attempt, uint64_t next_delay_usec);

/* After a restart of the agent: no shim knows of it, but it has run up to 'attempt'. That is an end
 * that nobody saw, and the policy says what follows. Nothing to who knows of an attempt already. */
void container_recover(ContainerLife *container, unsigned attempt, uint64_t now);

/* The same where it is known how that attempt ended: the policy said that nothing follows. */
void container_recover_end(ContainerLife *container, unsigned attempt, const ContainerExit *end,
                           const char *reason);

/* After a restart of the agent: its postStart hook need not be run again. */
void container_adopt_post_started(ContainerLife *container);

/* After a restart of the agent: the present attempt was told to end, not for good. */
void container_adopt_killed(ContainerLife *container);

/* After a restart of the agent: the shim is creating the present attempt right now. */
void container_adopt_creating(ContainerLife *container);

/* After a restart of the agent: how the attempt before the present one ended. */
void container_adopt_last(ContainerLife *container, unsigned attempt, const ContainerExit *end);

/* Questions. */
unsigned container_attempt(const ContainerLife *container);
/* The present attempt is none that is yet to come, and not later than this one. */
bool container_has_run(const ContainerLife *container, unsigned attempt);
bool container_has_begun(const ContainerLife *container); /* any attempt of it has */
uint64_t container_next_delay(
        const ContainerLife *container); /* travels with the attempt as its note */
bool container_has_process(const ContainerLife *container);
bool container_is_running(const ContainerLife *container); /* it has started */
bool container_is_up(const ContainerLife *container);      /* and its postStart hook is done */
bool container_is_stopping(const ContainerLife *container);
bool container_is_killed(const ContainerLife *container); /* see container_kill() */
bool container_has_post_started(const ContainerLife *container);
uint64_t container_started_at(const ContainerLife *container); /* realtime */
bool container_is_finished(const ContainerLife *container);
const char *container_waiting_reason(const ContainerLife *container); /* were it waiting */
bool container_has_succeeded(const ContainerLife *container);         /* finished, with 0 */
/* How it ended, if it has finished; or NULL. */
const ContainerState *container_end(const ContainerLife *container);
uint64_t container_finished_at(const ContainerLife *container); /* realtime; 0: it never ended */

/* It runs, and what comes after it in the pod's order may begin. */
bool container_has_started(const ContainerLife *container);

/* Its end is one after which all containers are restarted, after what is left of the delay. */
bool container_wants_all(const ContainerLife *container, uint64_t *ret_delay_usec);
bool container_waits_for_image(const ContainerLife *container);
bool container_is_waiting(const ContainerLife *container);     /* for container_start() */
bool container_is_in_back_off(const ContainerLife *container); /* after an end or a failure */

/* Fills in 'ret' (zeroed before); what the pod knows better, it adds. 0 or -ENOMEM. */
int container_status(const ContainerLife *container, const char *uid, ContainerStatus *ret);

/* Prints the table of moves as Markdown, as agent/README.md has it. */
void container_print_moves(FILE *out);
