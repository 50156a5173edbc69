/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The total requests of a pod: for admission, and for its status. Pure. */

#include "agent/model/resource.h"

/* As Kubernetes computes it (PodRequests): the pod-level request if it is set, otherwise that of
 * its containers, plus the overhead of its runtime class. CPU in thousandths, the others in bytes;
 * -1 if it is unset. */
int64_t pod_total_request(const PodSpec *spec, ResourceType type);

/* All total requests as quantities, in a zeroed list that the caller releases with schema_done(). 0
 * or -ENOMEM. */
int pod_total_resources(const PodSpec *spec, ResourceRequirements *ret);
