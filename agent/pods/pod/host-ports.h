/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* hostPort: host ports that pods request (kubelet: the predicate NodePorts). Those of
 * containers and sidecars count; an address conflicts with itself and with all addresses. Pure. */

#include "agent/model/pod.h"

bool pod_has_host_ports(const PodSpec *spec);

/* The first port of 'spec' that a port of 'other' conflicts with; its path ("spec.containers[0]
 * .ports[1].hostPort") is written to 'ret_path', which the caller frees. NULL: none, or none is
 * known because memory is exhausted. */
const ContainerPort *find_host_port_conflict(const PodSpec *spec, const PodSpec *other,
                                             char **ret_path);
