/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* In which order a pod's containers begin and end, as Kubernetes has it: those of init one after
 * another, each to its end or, a sidecar, until it has started; then all others together. At the
 * end the others first, then the sidecars in reverse. Pure: facts in, what is due out. */

#include "agent/model/containers.h"

typedef enum ContainerOrderAction {
        ORDER_NOTHING,
        ORDER_START,
        ORDER_RETIRE, /* it runs on, and is not started any more */
        ORDER_STOP,
} ContainerOrderAction;

/* One container; a pod's stand as in pod_nth_container(). */
typedef struct ContainerOrderEntry {
        ContainerRole role;
        bool has_run;     /* in this sandbox, and since all were restarted */
        bool has_started; /* it runs, and others may build on it */
        bool is_waiting;  /* to be started */
        bool is_finished;
        bool has_succeeded;          /* finished, with 0 */
        ContainerOrderAction action; /* out */
} ContainerOrderEntry;

typedef enum PodProgress {
        PROGRESS_INITIALIZING,
        PROGRESS_RUNNING,
        PROGRESS_FAILED, /* a container of init failed for good */
        PROGRESS_DONE,   /* all main containers have ended for good */
} PodProgress;

PodProgress pod_progress_of(const ContainerOrderEntry *entries, size_t n);

typedef struct ContainerOrderInput {
        bool must_end;  /* whatever the course */
        bool must_hold; /* nothing is started */
        bool is_late;   /* the time to end in order is over: all at once */
} ContainerOrderInput;

/* Says for each container what is due now. */
void plan_container_order(ContainerOrderEntry *entries, size_t n, const ContainerOrderInput *input);

/* Whether a container that was held back by itself (a back-off, an image) may go on. */
bool container_order_allows_start(const ContainerOrderEntry *entries, size_t n, size_t i);
