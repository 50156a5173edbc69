/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Lifecycle hooks (postStart, preStop), the stop signal and the grace period of one container. */

#include "agent/pods/container-instance.h"

typedef struct ContainerHooks {
        const ContainerInstance *container;
        /* A postStart hook ended: the attempt's checkpoint has changed. */
        void (*on_post_start_done)(void *userdata);
        void *userdata;
        HandlerRun *run; /* the hook that runs */
        ContainerHook kind;
        uint64_t pre_stop_began_at; /* boot time; 0: the attempt's preStop hook was not run */
        OptionalInt kill_grace;     /* seconds, of a kill that a restart may follow */
} ContainerHooks;

/* How an attempt is to be stopped. */
typedef struct ContainerStop {
        unsigned attempt;
        bool for_good;           /* with what is left of the pod's grace period: */
        uint64_t pod_grace_usec; /* from now on */
        int signal;              /* 0: SIGTERM */
} ContainerStop;

/* A new attempt starts. */
void container_hooks_reset(ContainerHooks *hooks);

/* Sends the stop signal, and SIGKILL at the end of the grace period. */
void container_hooks_stop(ContainerHooks *hooks, const ContainerStop *stop);

/* The container is being stopped already, and now has only the grace period of 'stop'. */
void container_hooks_shorten_grace(ContainerHooks *hooks, const ContainerStop *stop);

/* Runs a hook; container_machine_on_hook_done() follows. 'stop' is used by preStop only. */
void container_hooks_run(ContainerHooks *hooks, ContainerHook hook, const ContainerStop *stop);
void container_hooks_cancel(ContainerHooks *hooks);

/* Kills the present attempt, with a grace period of its own (unset: the pod's). False: it is being
 * stopped already. 'why' is the termination message where the container leaves none. */
bool container_hooks_kill(ContainerHooks *hooks, const OptionalInt *grace, const char *why);
