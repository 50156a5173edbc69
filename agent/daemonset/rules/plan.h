/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which pods of a DaemonSet there should be now, given those that there are: the rolling update of
 * Kubernetes' controller on the one node that we see. */

#include "agent/daemonset/rules/rules.h"

/* A pod of the set's, as it is. */
typedef struct DaemonSetPodState {
        bool is_current;     /* of the revision that is wanted */
        bool is_terminating; /* it has been told to end */
        bool is_syncing;     /* what it is has not been learned yet */
        bool is_terminal;    /* by itself: it has failed, or succeeded */
        bool is_ready;
        uint64_t ready_since; /* where it is ready */
        uint64_t start_time;
} DaemonSetPodState;

typedef struct DaemonSetPodStates {
        const DaemonSetPodState *items;
        size_t n;
} DaemonSetPodStates;

typedef struct DaemonSetPlan {
        bool creates_pod; /* a pod of the wanted revision, which is none of those that are kept */
        bool awaits_preflight; /* the old one is kept until a new one could begin; see
                                  'is_preflighted' */
        bool is_available;     /* the wanted revision is, for as long as minReadySeconds ask */
        bool is_settled;       /* nothing more happens, unless something happens */
        bool is_syncing;       /* it says no more than that all there is goes on */
        uint64_t ready_since;  /* the pod of the wanted revision; 0: it is not ready */
        uint64_t again_at;     /* time alone changes the plan then; 0: never */
} DaemonSetPlan;

/* Of what the plan is asked, beside the pods. */
typedef struct DaemonSetPlanInput {
        DaemonSetVerdict verdict;
        bool is_preflighted; /* nothing that can be had before is missing for the wanted pod */
        bool is_backing_off; /* a pod that has ended is not made anew yet */
        uint64_t now;        /* of the clock of the pods' times */
} DaemonSetPlanInput;

/* 'ret_keep' has an entry for each pod: the others are to end. */
void daemonset_plan(const DaemonSet *set, const DaemonSetPodStates *pods,
                    const DaemonSetPlanInput *input, bool ret_keep[], DaemonSetPlan *ret);

/* Whether a pod has ended that can only be made anew; see failed_pods_backoff_is_over(). */
bool daemonset_has_terminal_pod(const DaemonSet *set, const DaemonSetPodStates *pods);
