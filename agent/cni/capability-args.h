/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Capability arguments of a pod (runtimeConfig): port mappings and bandwidth, according to the CNI
 * conventions. */

#include "agent/model/pod.h"
#include "common/error.h"

#include <jansson.h>

/* {"portMappings": [...], "bandwidth": {...}} for the hostPorts of the pod's containers and the
 * annotations kubernetes.io/ingress-bandwidth and egress-bandwidth; parts that the pod does not use
 * are absent. The caller owns the reference. 0, -ENOMEM, or -EINVAL with a message. */
int cni_capability_args_build(const Pod *pod, json_t **ret, Error *reterr);
