/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a pod asks of the plugins beyond an address: CNI's conventional capabilities. */

#include "agent/model/pod.h"
#include "common/error.h"

#include <jansson.h>

/* {"portMappings": [...], "bandwidth": {...}} by the hostPorts of the pod's containers and the
 * annotations kubernetes.io/ingress-bandwidth and egress-bandwidth; what is not asked for is
 * absent. The caller owns the reference. 0, -ENOMEM, or -EINVAL with the sentence. */
int cni_capability_args_build(const Pod *pod, json_t **ret, Error *reterr);
