/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The order in which a pod's containers start and stop: init containers one after another, each
 * until it has completed or, if it is a sidecar, until it has started; then all main containers
 * together, except that the containers after one with a postStart hook wait until the hook has
 * ended. All containers begin to stop together: their preStop hooks run in parallel. The stop
 * signal of a sidecar waits for the end of the main containers and of the sidecars after it
 * (kubelet: terminationOrdering). Ephemeral containers start at any time and stop with the main
 * containers, and no container waits for them. Pure: facts in, actions out. */

#include "agent/model/containers.h"

typedef enum ContainerOrderAction {
        ORDER_NOTHING,
        ORDER_START,
        ORDER_STOP_IN_TURN, /* its preStop hook runs, but its stop signal waits for other
                             * containers */
        ORDER_STOP,
} ContainerOrderAction;

/* One container, numbered as in pod_nth_container(). */
typedef struct ContainerOrderEntry {
        ContainerRole role;
        bool has_run;     /* in this sandbox, since the last restart of all containers */
        bool has_started; /* it is running, and containers may depend on it */
        bool is_waiting;  /* it is waiting to be started */
        bool holds_next;  /* its postStart hook is due or running */
        bool is_finished;
        bool has_succeeded;          /* it has finished with exit code 0 */
        ContainerOrderAction action; /* out */
} ContainerOrderEntry;

typedef enum PodProgress {
        PROGRESS_INITIALIZING,
        PROGRESS_RUNNING,
        PROGRESS_FAILED, /* an init container has failed permanently */
        PROGRESS_DONE,   /* all main containers have ended permanently */
} PodProgress;

PodProgress pod_progress_of(const ContainerOrderEntry *entries, size_t n);

typedef struct ContainerOrderInput {
        bool must_end;  /* all containers must stop */
        bool must_hold; /* no container may be started */
        bool is_late;   /* the grace period is over: all containers stop at once */
} ContainerOrderInput;

/* Sets the action that is now due for each container. */
void plan_container_order(ContainerOrderEntry *entries, size_t n, const ContainerOrderInput *input);

/* Whether a container that has waited for something else (a back-off, an image) may start now. */
bool container_order_allows_start(const ContainerOrderEntry *entries, size_t n, size_t i);
