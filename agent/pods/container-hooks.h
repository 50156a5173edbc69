/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The lifecycle hooks of one container: postStart and preStop, and their events FailedPostStartHook
 * and FailedPreStopHook. preStop runs within the grace period (container-stop.h). */

#include "agent/pods/container-stop.h"

typedef struct ContainerHooks {
        const ContainerInstance *container;
        ContainerStopper *stopper; /* of the same container */
        /* A postStart hook ended: the attempt's checkpoint has changed. */
        void (*on_post_start_done)(void *userdata);
        void *userdata;
        HandlerRun *run; /* the hook that runs */
        ContainerHook kind;
} ContainerHooks;

/* Runs a hook; container_machine_on_hook_done() follows. 'stop' is used by preStop only. */
void container_hooks_run(ContainerHooks *hooks, ContainerHook hook, const ContainerStop *stop);
void container_hooks_cancel(ContainerHooks *hooks);
bool container_hooks_pre_stop_is_running(const ContainerHooks *hooks);
