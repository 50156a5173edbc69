/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which pod is evicted first, by the kubelet's order. Pure. */

#include "agent/model/eviction.h"

typedef struct PodUsage {
        size_t index; /* the caller's */
        int64_t priority;
        bool is_known;     /* what it uses */
        int64_t used;      /* bytes, inodes or processes, of what is short */
        int64_t requested; /* 0 of what cannot be asked for */
} PodUsage;

/* Sorts: who goes first is first. Of memory and disk it is those that use more than they asked for,
 * then those of the lower priority, then those that exceed what they asked for the most; of
 * processes those of the lower priority, then those that have the most. Whose use is not known is
 * last. */
void rank_pods_for_eviction(EvictionSignal signal, PodUsage *usages, size_t n);

/* Whether it would help of 'missing' that the pod goes: the node's disk is often filled by others,
 * and to end all pods for that would bring nothing. Of memory and processes always. */
bool eviction_frees_enough(EvictionSignal signal, const PodUsage *usage, int64_t missing);
