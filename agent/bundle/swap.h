/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The swap limit of a container: a share proportional to its memory request if
 * memorySwap.swapBehavior is LimitedSwap, otherwise 0. */

#include "agent/bundle/runtime-spec-input.h"

/* Whether the kernel can limit swap. */
bool swap_is_limitable(int cgroup_version);

/* In bytes. With cgroup v2 and LimitedSwap, more than 0 for a container of a Burstable pod whose
 * memory request is above zero and below its limit, unless the pod is system-critical. Otherwise
 * 0. */
int64_t container_swap_bytes(const BundleConfig *config, const PodSpec *spec,
                             const Container *container, int cgroup_version);
