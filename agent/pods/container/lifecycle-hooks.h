/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The lifecycle hooks of one container: postStart and preStop, and their events FailedPostStartHook
 * and FailedPreStopHook. preStop runs within the grace period (container-stop.h). */

#include "agent/pods/container/container-stop.h"

typedef struct LifecycleHooks {
        const ContainerInstance *container;
        ContainerStopper *stopper; /* of the same container */
        /* A postStart hook has ended: the attempt's checkpoint has changed. */
        void (*on_post_start_done)(void *userdata);
        void *userdata;
        HandlerRun *run; /* the running hook */
        LifecycleHook kind;
} LifecycleHooks;

/* Runs a hook; container_machine_on_hook_done() follows. Only preStop uses 'stop'. */
void lifecycle_hooks_run(LifecycleHooks *hooks, LifecycleHook hook, const ContainerStop *stop);
/* To be called when the container has ended, or is stopped before its postStart hook has ended. As
 * in the kubelet, a preStop hook that is still running counts as failed. */
void lifecycle_hooks_abandon(LifecycleHooks *hooks);
/* Like lifecycle_hooks_abandon(), but without an event. */
void lifecycle_hooks_cancel(LifecycleHooks *hooks);
