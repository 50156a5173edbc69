/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which pods of a DaemonSet there should be now, given those that there are: the rolling update of
 * Kubernetes' controller on the one node that we see. */

#include "agent/daemonset/daemonset.h"

/* A pod of the set's, as it is. */
typedef struct DaemonPod {
        bool is_current; /* of the revision that is wanted */
        bool is_ending;  /* it has been told to end */
        bool is_syncing; /* what it is has not been learned yet */
        bool has_ended;  /* by itself: it has failed, or succeeded */
        bool is_ready;
        uint64_t ready_since; /* where it is ready */
        uint64_t start_time;
} DaemonPod;

typedef struct DaemonPods {
        const DaemonPod *items;
        size_t n;
} DaemonPods;

typedef struct DaemonPlan {
        bool wants_new;    /* a pod of the wanted revision, which is none of those that are kept */
        bool stages;       /* the old one is kept until a new one could begin; see 'is_staged' */
        bool is_available; /* the wanted revision is, for as long as minReadySeconds ask */
        bool is_settled;   /* nothing more happens, unless something happens */
        bool is_syncing;   /* it says no more than that all there is goes on */
        uint64_t ready_since; /* the pod of the wanted revision; 0: it is not ready */
        uint64_t again_at;    /* time alone changes the plan then; 0: never */
} DaemonPlan;

/* Of what the plan is asked, beside the pods. */
typedef struct DaemonPlanning {
        DaemonVerdict verdict;
        bool is_staged; /* nothing that can be had before is missing for the wanted pod */
        bool backs_off; /* a pod that has ended is not made anew yet */
        uint64_t now;   /* of the clock of the pods' times */
} DaemonPlanning;

/* 'ret_keep' has an entry for each pod: the others are to end. */
void daemonset_plan(const DaemonSet *set, const DaemonPods *pods, const DaemonPlanning *planning,
                    bool ret_keep[], DaemonPlan *ret);

/* Whether a pod has ended that can only be made anew; see daemon_back_off_is_over(). */
bool daemonset_has_ended_pod(const DaemonSet *set, const DaemonPods *pods);
