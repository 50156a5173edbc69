/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The DaemonSet of apps/v1 and of earlier versions: plain data, with defaults applied and validated
 * by manifest/, evaluated by daemonset/. */

#include "agent/model/pod.h"

typedef enum DaemonSetStrategy {
        DAEMONSET_STRATEGY_UNSET,
        DAEMONSET_ROLLING_UPDATE,
        DAEMONSET_ON_DELETE,
        N_DAEMONSET_STRATEGIES,
} DaemonSetStrategy;

extern const char *const daemonset_strategy_names[N_DAEMONSET_STRATEGIES];

/* Each of the two is a number of nodes or a percentage, "25%". */
typedef struct RollingUpdateDaemonSet {
        IntOrString max_unavailable; /* 1 */
        IntOrString max_surge;       /* 0 */
} RollingUpdateDaemonSet;

typedef struct DaemonSetUpdateStrategy {
        DaemonSetStrategy type;
        RollingUpdateDaemonSet *rolling_update; /* never NULL if the type is RollingUpdate */
} DaemonSetUpdateStrategy;

typedef struct DaemonSetSpec {
        LabelSelector *selector; /* never NULL after defaulting */
        Pod template;            /* its metadata only has labels and annotations */
        DaemonSetUpdateStrategy update_strategy;
        OptionalInt min_ready_seconds;
        OptionalInt revision_history_limit; /* 10 */
} DaemonSetSpec;

typedef struct DaemonSet {
        char *api_version;   /* "apps/v1"; older versions have other defaults */
        ObjectMeta metadata; /* its UID is computed from namespace and name */
        DaemonSetSpec spec;
} DaemonSet;

int daemonset_copy(const DaemonSet *set, DaemonSet **ret);
DaemonSet *daemonset_free(DaemonSet *set);
DEFINE_CLEANUP(DaemonSet *, daemonset_free)

/* The status of a DaemonSet on this node. Strings are borrowed. */
typedef struct DaemonSetStatus {
        uint64_t created; /* realtime */
        int64_t revision; /* of the desired template; 0: none yet */
        unsigned desired, current, misscheduled, ready, updated, available;
        bool runs_here;
        const char *rule;     /* the decisive field or rule, or NULL */
        const char *why;      /* a message, or NULL */
        bool is_complete;     /* the rollout is complete */
        bool is_rolled_back;  /* rolled back by the node: the file's revision did not become
                                 available in time */
        const char *rollback; /* the reason why the desired revision is not the file's, or NULL */
        const char *source;   /* its source, as text */
        bool is_of_api;       /* from an API server: its pods need admission */
        bool is_refused;      /* its pod is not created: */
        const char *refusal_reason; /* NULL: it is not known yet whether it may be created */
        const char *refusal;
} DaemonSetStatus;

/* The value of the field for one node: a percentage is rounded up or down. */
int64_t int_or_percent_of_one(const IntOrString *value, bool round_up);
