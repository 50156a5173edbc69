/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Describes a pod as a candidate for eviction: priority, requests, cgroups, directories. */

#include "agent/pods/container/pod-containers.h"

/* The caller releases *ret with eviction_candidate_done(), even after a failure. 0 or -ENOMEM. */
int describe_eviction_candidate(const PodInstance *pod, const PodContainers *containers,
                                EvictionCandidate *ret);
