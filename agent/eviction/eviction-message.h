/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kubelet's messages about evictions. Pure. */

#include "agent/model/eviction.h"

/* A resource that the node is short of. */
typedef struct ResourceShortage {
        EvictionSignal signal;
        int64_t quantity; /* quantity of the threshold */
        int64_t available;
        int64_t grace_seconds; /* the maximum for the evicted pod; < 0: the pod's own */
} ResourceShortage;

typedef struct ContainerUsage {
        const char *name;
        int64_t used;
        int64_t requested;
        const char *request; /* as in the spec; NULL: "0" */
} ContainerUsage;

/* Why a pod was evicted; names containers that use more than they request. The caller frees it;
 * NULL: out of memory. */
char *format_eviction_message(const ResourceShortage *shortage, const ContainerUsage *containers,
                              size_t n);

/* The message that resources are reclaimed, as in the kubelet's event EvictionThresholdMet. The
 * caller frees it; NULL: out of memory. */
char *format_reclaim_message(const ResourceShortage *shortage);
