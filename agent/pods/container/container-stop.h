/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Stopping one container (kubelet: killContainer): the stop signal, terminationGracePeriodSeconds,
 * SIGKILL, and how much of the grace period is left for the preStop hook. lifecycle-hooks.c runs
 * the hook itself. */

#include "agent/pods/container/container-instance.h"

/* How an attempt is stopped. */
typedef struct ContainerStop {
        unsigned attempt;
        bool for_good;           /* permanently, within the rest of the pod's grace period: */
        uint64_t pod_grace_usec; /* remaining from now on */
        int signal;              /* 0: SIGTERM */
} ContainerStop;

typedef struct ContainerStopper {
        const ContainerInstance *container;
        uint64_t pre_stop_started_at; /* awake time; 0: the attempt's preStop hook has not run */
        bool is_killing_reported;     /* the attempt's event Killing was recorded */
        OptionalInt kill_grace;       /* in seconds, for a kill after which the container may
                                       * restart */
} ContainerStopper;

/* To be called when a new attempt starts. */
void container_stopper_reset(ContainerStopper *stopper);

/* Sends the stop signal, and SIGKILL at the end of the grace period. */
void container_stop(ContainerStopper *stopper, const ContainerStop *stop);

/* To be called when the preStop hook starts. Returns its time limit, which is the grace period. The
 * shim sends the stop signal at its end, so that the container is stopped even if the agent is gone
 * when the hook ends. */
uint64_t container_stop_begin_pre_stop(ContainerStopper *stopper, const ContainerStop *stop);

/* Shortens the remaining time of a container that is already being stopped to the pod's grace
 * period in 'stop'. 'is_signal_held': its preStop hook is running, or it awaits its turn. The shim
 * then sends the stop signal at the end of the grace period, unless container_stop() is called
 * before. */
void container_stop_shorten_grace(ContainerStopper *stopper, const ContainerStop *stop,
                                  bool is_signal_held);

/* Kills the current attempt (because of a failed liveness or startup probe, or a restart on
 * request), with the given grace period; unset: the pod's. False: it is already being stopped.
 * 'why' is the termination message if the container does not write one. */
bool container_stop_kill(ContainerStopper *stopper, const OptionalInt *grace, const char *why);
