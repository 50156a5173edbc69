/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The ranking of pods for eviction (kubelet: rankMemoryPressure, rankDiskPressure,
 * rankPIDPressure). Pure. */

#include "agent/model/eviction.h"

typedef struct PodUsage {
        size_t index; /* the caller's */
        int64_t priority;
        bool is_known;     /* 'used' is known */
        int64_t used;      /* in bytes, inodes or processes */
        int64_t requested; /* 0 for inodes and processes */
} PodUsage;

/* Sorts the pods so that the one to be evicted first is at the front. For memory and disk: pods
 * that exceed their requests, then those of lower priority, then those that exceed their requests
 * by the most. For processes: pods of lower priority, then those with the most processes. Pods
 * whose usage is unknown come last. */
void rank_pods_for_eviction(EvictionSignal signal, PodUsage *usages, size_t n);

/* Whether the eviction would help if 'missing' has to be reclaimed: a disk is often filled by
 * something else, in which case evicting all pods would be useless. True for memory and processes.
 */
bool eviction_frees_enough(EvictionSignal signal, const PodUsage *usage, int64_t missing);
