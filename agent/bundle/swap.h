/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a container may have of the node's swap: nothing, unless memorySwap.swapBehavior of the
 * configuration is LimitedSwap, and then its share by its memory request. */

#include "agent/bundle/runtime-spec.h"

/* Whether the kernel limits swap. */
bool swap_is_limitable(int cgroup_version);

/* Bytes. On cgroup v2 with LimitedSwap, a Burstable pod's container that asks for some memory and
 * for less than it may use; but none of a pod that is critical to the system. Else 0. */
int64_t container_swap_bytes(const BundleConfig *config, const PodSpec *spec,
                             const Container *container, int cgroup_version);
