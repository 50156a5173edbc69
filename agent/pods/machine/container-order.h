/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The order in which a pod's containers start and stop: init containers one after another, each
 * until it has completed or, a sidecar, until it has started; then all main containers together,
 * except that one with a postStart hook is waited for by those after it until the hook has ended.
 * The stop begins for all containers together: their preStop hooks run at once. The stop signal of
 * a sidecar waits for the end of the main containers and of the sidecars after it (kubelet:
 * terminationOrdering). Ephemeral containers start at any time, stop with the main containers, and
 * the others wait for none of them. Pure: facts in, actions out. */

#include "agent/model/containers.h"

typedef enum ContainerOrderAction {
        ORDER_NOTHING,
        ORDER_START,
        ORDER_STOP_IN_TURN, /* its preStop hook runs, its stop signal waits for others */
        ORDER_STOP,
} ContainerOrderAction;

/* One container; numbered as by pod_nth_container(). */
typedef struct ContainerOrderEntry {
        ContainerRole role;
        bool has_run;     /* in this sandbox, and since all were restarted */
        bool has_started; /* it runs, and others may depend on it */
        bool is_waiting;  /* to be started */
        bool holds_next;  /* its postStart hook is due, or runs */
        bool is_finished;
        bool has_succeeded;          /* finished, with 0 */
        ContainerOrderAction action; /* out */
} ContainerOrderEntry;

typedef enum PodProgress {
        PROGRESS_INITIALIZING,
        PROGRESS_RUNNING,
        PROGRESS_FAILED, /* a container of init failed permanently */
        PROGRESS_DONE,   /* all main containers have ended permanently */
} PodProgress;

PodProgress pod_progress_of(const ContainerOrderEntry *entries, size_t n);

typedef struct ContainerOrderInput {
        bool must_end;  /* all stop */
        bool must_hold; /* no container is started */
        bool is_late;   /* the grace period is over: all stop at once */
} ContainerOrderInput;

/* Sets the action that is due for each container. */
void plan_container_order(ContainerOrderEntry *entries, size_t n, const ContainerOrderInput *input);

/* Whether a container that waited for itself (a back-off, an image) may start now. */
bool container_order_allows_start(const ContainerOrderEntry *entries, size_t n, size_t i);
