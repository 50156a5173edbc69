/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Compares the desired pods with the actual ones: which to start, edit, keep and stop. Pure: it
 * reads no file, process or clock, and does nothing. A pod is stopped only for a reason that its
 * source gave; the mere fact that no source desires it is not a reason. */

#include "agent/model/desired-pods.h"

typedef enum PodWorkerActionKind {
        POD_WORKER_ACTION_START, /* there is none, or one that is terminating */
        POD_WORKER_ACTION_EDIT,  /* the one that runs is different */
        POD_WORKER_ACTION_KEEP,  /* it is as desired; its source changed, or nothing follows it */
        POD_WORKER_ACTION_DROP_SUCCESSOR, /* pods that have not started yet are not desired any
                                           * more */
        POD_WORKER_ACTION_STOP,           /* because of 'reason' */
        N_POD_WORKER_ACTIONS,
} PodWorkerActionKind;

extern const char *const pod_worker_action_names[N_POD_WORKER_ACTIONS];

/* Borrowed from the two sets. */
typedef struct PodWorkerAction {
        PodWorkerActionKind kind;
        const ObjectMeta *metadata; /* namespace and name */
        const PodSource *source;    /* of 'pod' */
        const Pod *pod;             /* to start, or to edit to */
        const char *reason;
} PodWorkerAction;

typedef LIST_OF(PodWorkerAction) PodWorkerActions;

/* Stops come last. 0 or -ENOMEM; the caller ends the list with pod_worker_actions_done(). */
int diff_desired_pods(const DesiredPods *desired, const ActualPods *actual, PodWorkerActions *ret);
void pod_worker_actions_done(PodWorkerActions *actions);
