/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is said of an eviction, in the kubelet's words. Pure. */

#include "agent/model/eviction.h"

/* What the node is short of. */
typedef struct ResourceShortage {
        EvictionSignal signal;
        int64_t quantity; /* of the threshold */
        int64_t available;
        int64_t grace_seconds; /* for the containers of who goes; < 0: as their pod says */
} ResourceShortage;

typedef struct ContainerUsage {
        const char *name;
        int64_t used;
        int64_t requested;
        const char *request; /* as it is written; NULL: "0" */
} ContainerUsage;

/* Why a pod was evicted; the containers are named that use more than they asked for. Memory that
 * the caller frees, or NULL. */
char *format_eviction_message(const ResourceShortage *shortage, const ContainerUsage *containers,
                              size_t n);

/* "[MemoryPressure DiskPressure]" for a set that is not empty. Likewise. */
char *format_condition_list(unsigned conditions);
