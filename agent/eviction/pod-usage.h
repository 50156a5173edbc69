/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The usage of a candidate for eviction: memory and processes from its cgroup, disk and inodes as
 * measured by a child process. */

#include "agent/eviction/eviction-message.h"
#include "agent/eviction/pod-ranking.h"

/* 'written' is the usage of the candidate's storage paths; NULL if it was not measured. */
PodUsage measure_pod_usage(const EvictionCandidate *candidate, EvictionSignal signal,
                           const uint64_t *written, size_t index);

/* The usage of each container, for the message; 'ret' has room for all of them. The names are
 * borrowed from the candidate. */
void measure_container_usages(const EvictionCandidate *candidate, EvictionSignal signal,
                              const uint64_t *written, ContainerUsage *ret);
