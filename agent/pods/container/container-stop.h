/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Stopping one container (kubelet: killContainer): the stop signal, terminationGracePeriodSeconds,
 * SIGKILL, and how much of the grace period is left for the preStop hook. lifecycle-hooks.c runs
 * the hook itself. */

#include "agent/pods/container/container-instance.h"

/* How an attempt is stopped. */
typedef struct ContainerStop {
        unsigned attempt;
        bool for_good;           /* with the rest of the pod's grace period: */
        uint64_t pod_grace_usec; /* from now on */
        int signal;              /* 0: SIGTERM */
} ContainerStop;

typedef struct ContainerStopper {
        const ContainerInstance *container;
        uint64_t pre_stop_started_at; /* awake time; 0: the attempt's preStop hook was not run */
        bool is_killing_reported;     /* the attempt's event */
        OptionalInt kill_grace;       /* seconds, of a kill that a restart may follow */
} ContainerStopper;

/* A new attempt starts. */
void container_stopper_reset(ContainerStopper *stopper);

/* Sends the stop signal, and SIGKILL at the end of the grace period. */
void container_stop(ContainerStopper *stopper, const ContainerStop *stop);

/* The preStop hook starts now. Returns the time that it has: the grace period. The shim sends the
 * stop signal at its end: should the agent be gone when the hook ends, the container is stopped all
 * the same. */
uint64_t container_stop_begin_pre_stop(ContainerStopper *stopper, const ContainerStop *stop);

/* The container is being stopped already, and now has only the pod's grace period of 'stop'.
 * 'is_signal_held': its preStop hook runs, or it awaits its turn. The shim then sends the stop
 * signal at the end of the grace period, unless container_stop() is called before. */
void container_stop_shorten_grace(ContainerStopper *stopper, const ContainerStop *stop,
                                  bool is_signal_held);

/* Kills the current attempt (a failed liveness or startup probe, a restart on request), with its
 * own grace period; unset: the pod's. False: it is being stopped already. 'why' is the termination
 * message if the container leaves none. */
bool container_stop_kill(ContainerStopper *stopper, const OptionalInt *grace, const char *why);
