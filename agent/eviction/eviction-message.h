/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kubelet's message of an eviction. Pure. */

#include "agent/model/eviction.h"

/* The resource that the node is short of. */
typedef struct ResourceShortage {
        EvictionSignal signal;
        int64_t quantity; /* of the threshold */
        int64_t available;
        int64_t grace_seconds; /* at most, for the evicted pod; < 0: the pod's own */
} ResourceShortage;

typedef struct ContainerUsage {
        const char *name;
        int64_t used;
        int64_t requested;
        const char *request; /* as the spec has it; NULL: "0" */
} ContainerUsage;

/* Why a pod was evicted; containers that use more than they request are named. Memory that the
 * caller frees, or NULL. */
char *format_eviction_message(const ResourceShortage *shortage, const ContainerUsage *containers,
                              size_t n);

/* The message that resources are reclaimed, like in the kubelet's event EvictionThresholdMet.
 * Likewise. */
char *format_reclaim_message(const ResourceShortage *shortage);
