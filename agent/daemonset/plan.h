/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which pods of a DaemonSet there should be now, given those that there are: the rolling update of
 * Kubernetes' controller on the one node that we see. */

#include "agent/daemonset/daemonset.h"

/* A pod of the set's, as it is. */
typedef struct DaemonPod {
        bool is_current; /* of the revision that is wanted */
        bool is_ending;  /* it has been told to end */
        bool is_ready;
        uint64_t ready_since; /* realtime; where it is ready */
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
        uint64_t ready_since; /* the pod of the wanted revision; 0: it is not ready */
        uint64_t again_at;    /* realtime: time alone changes the plan then; 0: never */
} DaemonPlan;

/* 'ret_keep' has an entry for each pod: the others are to end. 'is_staged': nothing that can be had
 * before is missing for the pod of the wanted revision. */
void daemonset_plan(const DaemonSet *set, DaemonVerdict verdict, const DaemonPods *pods,
                    bool is_staged, uint64_t now_realtime, bool ret_keep[], DaemonPlan *ret);
