/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* scheduling.k8s.io/v1 PriorityClass and node.k8s.io/v1 RuntimeClass: the objects to which a pod
 * refers by priorityClassName and runtimeClassName. They are cluster-scoped, so they have no
 * namespace. */

#include "agent/model/pod.h"

/* Higher values are reserved for system classes. */
#define PRIORITY_OF_USERS_MAX 1000000000

typedef enum PreemptionPolicy {
        PREEMPTION_UNSET,
        PREEMPTION_LOWER_PRIORITY,
        PREEMPTION_NEVER,
        N_PREEMPTION_POLICIES,
} PreemptionPolicy;

extern const char *const preemption_policy_names[N_PREEMPTION_POLICIES];

typedef struct PriorityClass {
        OptionalInt value;
        bool global_default; /* applies to pods without priorityClassName */
        char *description;
        PreemptionPolicy preemption_policy; /* for schedulers */
} PriorityClass;

/* The overhead of a sandbox of this class. */
typedef struct RuntimeOverhead {
        ResourceList pod_fixed;
} RuntimeOverhead;

typedef struct RuntimeClass {
        char *handler; /* key of a runtime in the agent's configuration */
        RuntimeOverhead overhead;
} RuntimeClass;
