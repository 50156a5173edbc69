/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* hostPort: host ports that pods request (kubelet: the predicate NodePorts). Ports of containers
 * and sidecars are considered; an address conflicts with itself and with the wildcard address.
 * Pure. */

#include "agent/model/pod.h"

bool pod_has_host_ports(const PodSpec *spec);

/* The first port of 'spec' that conflicts with a port of 'other'; its path ("spec.containers[0]
 * .ports[1].hostPort") is written to 'ret_path', which the caller frees. NULL: none, or memory is
 * exhausted. */
const ContainerPort *find_host_port_conflict(const PodSpec *spec, const PodSpec *other,
                                             char **ret_path);
