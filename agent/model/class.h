/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* scheduling.k8s.io/v1 PriorityClass and node.k8s.io/v1 RuntimeClass: what a pod means by its
 * priorityClassName and its runtimeClassName. They belong to the node, not to a namespace. */

#include "agent/model/pod.h"

/* What is above belongs to the classes of the system. */
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
        bool global_default; /* of pods that name none */
        char *description;
        PreemptionPolicy preemption_policy; /* a scheduler's business */
} PriorityClass;

/* What a sandbox of the class needs for itself. */
typedef struct RuntimeOverhead {
        ResourceList pod_fixed;
} RuntimeOverhead;

typedef struct RuntimeClass {
        char *handler; /* a runtime of the node's configuration */
        RuntimeOverhead overhead;
} RuntimeClass;
