/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rolling update of Kubernetes' controller (updateStrategy RollingUpdate with maxSurge and
 * maxUnavailable, OnDelete) on one node: which of a DaemonSet's pods are kept, and whether a pod is
 * created. */

#include "agent/daemonset/rules/rules.h"

/* The state of a pod of the set. */
typedef struct DaemonSetPodState {
        bool is_current;     /* it has the desired revision */
        bool is_terminating; /* it is being stopped */
        bool is_syncing;     /* its state is still unknown */
        bool is_terminal;    /* it has failed or succeeded */
        bool is_ready;
        uint64_t ready_since; /* valid if it is ready */
        uint64_t start_time;
} DaemonSetPodState;

typedef struct DaemonSetPodStates {
        const DaemonSetPodState *items;
        size_t n;
} DaemonSetPodStates;

typedef struct DaemonSetPlan {
        bool creates_pod;      /* a pod of the desired revision is to be created */
        bool awaits_preflight; /* the old pod is kept until a new one can start; see
                                  'is_preflighted' */
        bool is_available;     /* the desired revision has been ready for minReadySeconds */
        bool is_settled;       /* the update is complete: only an event can change the plan */
        bool is_syncing;       /* the state of a pod is unknown, so all pods are kept */
        uint64_t ready_since;  /* time at which the pod of the desired revision became ready; 0: it
                                * is not ready */
        uint64_t again_at;     /* time at which the plan changes without an event; 0: never */
} DaemonSetPlan;

/* The parameters of the plan in addition to the pods. */
typedef struct DaemonSetPlanInput {
        DaemonSetVerdict verdict;
        bool is_preflighted; /* images are present, and checks of the new pod have passed */
        bool is_backing_off; /* a failed pod is not replaced yet */
        uint64_t now;        /* from the same clock as the pods' times */
} DaemonSetPlanInput;

/* 'ret_keep' has an entry for each pod: those that are not kept are stopped. */
void daemonset_plan_update(const DaemonSet *set, const DaemonSetPodStates *pods,
                           const DaemonSetPlanInput *input, bool ret_keep[], DaemonSetPlan *ret);

/* A pod has failed or succeeded and must be replaced; see failed_pods_back_off_is_over(). */
bool daemonset_has_terminal_pod(const DaemonSet *set, const DaemonSetPodStates *pods);
