/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a candidate for eviction uses of the resource that the node is short of: memory and
 * processes from its cgroup, disk and inodes as a child has measured them. */

#include "agent/eviction/eviction-message.h"
#include "agent/eviction/pod-ranking.h"

/* 'written' is what the candidate's storage paths hold; NULL where it was not measured. */
PodUsage measure_pod_usage(const EvictionCandidate *candidate, EvictionSignal signal,
                           const uint64_t *written, size_t index);

/* What each container uses, for the message; 'ret' has a place for each. The names are the
 * candidate's. */
void measure_container_usages(const EvictionCandidate *candidate, EvictionSignal signal,
                              const uint64_t *written, ContainerUsage *ret);
