/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The DaemonSet of apps/v1 and of the versions before it: plain data, defaulted and validated by
 * manifest/, evaluated by daemonset/. */

#include "agent/model/pod.h"

typedef enum DaemonSetStrategy {
        DAEMONSET_STRATEGY_UNSET,
        DAEMONSET_ROLLING_UPDATE,
        DAEMONSET_ON_DELETE,
        N_DAEMONSET_STRATEGIES,
} DaemonSetStrategy;

extern const char *const daemonset_strategy_names[N_DAEMONSET_STRATEGIES];

/* Each a number of nodes, or a share of them: "25%". */
typedef struct RollingUpdateDaemonSet {
        IntOrString max_unavailable; /* 1 */
        IntOrString max_surge;       /* 0 */
} RollingUpdateDaemonSet;

typedef struct DaemonSetUpdateStrategy {
        DaemonSetStrategy type;
        RollingUpdateDaemonSet *rolling_update; /* never NULL where the type is RollingUpdate */
} DaemonSetUpdateStrategy;

typedef struct DaemonSetSpec {
        LabelSelector *selector; /* never NULL after defaulting */
        Pod template;            /* labels and annotations are all that its metadata has */
        DaemonSetUpdateStrategy update_strategy;
        OptionalInt min_ready_seconds;
        OptionalInt revision_history_limit; /* 10 */
} DaemonSetSpec;

typedef struct DaemonSet {
        char *api_version;   /* "apps/v1"; the older ones have other defaults */
        ObjectMeta metadata; /* its UID is computed from what it is called, and where */
        DaemonSetSpec spec;
} DaemonSet;

int daemonset_copy(const DaemonSet *set, DaemonSet **ret);
DaemonSet *daemonset_free(DaemonSet *set);
DEFINE_CLEANUP(DaemonSet *, daemonset_free)

/* What is told of a set as a whole; of this node, which is all nodes that there are. Strings are
 * borrowed. */
typedef struct DaemonSetStatus {
        uint64_t created; /* realtime */
        int64_t revision; /* of the template that is wanted; 0: none yet */
        unsigned desired, current, misscheduled, ready, updated, available;
        bool runs_here;
        const char *rule;     /* that decided it, or NULL */
        const char *why;      /* in words, or NULL */
        bool is_complete;     /* the rollout is over */
        bool is_rolled_back;  /* by itself: the file's did not become available in its time */
        const char *rollback; /* why another revision is wanted than the file's, or NULL */
        const char *source;   /* where it comes from, in words */
} DaemonSetStatus;

/* The number that a field means where there is one node: a percentage is rounded up or down. */
int64_t int_or_percent_of_one(const IntOrString *value, bool round_up);
