/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Compares the desired pods with the actual ones, and determines which to start, edit, keep and
 * stop. Pure: it uses no file, process or clock, and changes nothing. A pod is stopped only for a
 * reason that its source gave; the absence of the pod from all sources is not a reason. */

#include "agent/model/desired-pods.h"

typedef enum PodWorkerActionKind {
        POD_WORKER_ACTION_START, /* there is no such pod, or it is terminating */
        POD_WORKER_ACTION_EDIT,  /* the running one is different */
        POD_WORKER_ACTION_KEEP,  /* the pod is as desired; only its source has changed, or it no
                                  * longer has a successor */
        POD_WORKER_ACTION_DROP_SUCCESSOR, /* the successors that have not started yet are no longer
                                           * desired */
        POD_WORKER_ACTION_STOP,           /* for 'reason' */
        N_POD_WORKER_ACTIONS,
} PodWorkerActionKind;

extern const char *const pod_worker_action_names[N_POD_WORKER_ACTIONS];

/* Borrowed from the two sets. */
typedef struct PodWorkerAction {
        PodWorkerActionKind kind;
        const ObjectMeta *metadata; /* namespace and name */
        const PodSource *source;    /* source of 'pod' */
        const Pod *pod;             /* the pod to start, or the edited one */
        const char *reason;
} PodWorkerAction;

typedef LIST_OF(PodWorkerAction) PodWorkerActions;

/* Stops come last. 0 or -ENOMEM; the caller releases the list with pod_worker_actions_done(). */
int diff_desired_pods(const DesiredPods *desired, const ActualPods *actual, PodWorkerActions *ret);
void pod_worker_actions_done(PodWorkerActions *actions);
