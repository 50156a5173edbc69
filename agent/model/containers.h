/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All containers of a pod, including init and ephemeral ones: their roles, iteration, and the sum
 * of their resources; the limits of one container. Pure. */

#include "agent/model/pod.h"

typedef enum ContainerRole {
        ROLE_INIT,    /* runs to completion before the next one starts */
        ROLE_SIDECAR, /* an init container with restartPolicy Always: runs in parallel with all
                       * later ones */
        ROLE_MAIN,
        ROLE_EPHEMERAL, /* added to the running pod: runs once, and the pod does not depend on it
                         */
} ContainerRole;

size_t pod_count_containers(const PodSpec *spec);

/* Init containers first, then main containers, then ephemeral ones, each in the order of the spec;
 * NULL beyond the last. */
const Container *pod_nth_container(const PodSpec *spec, size_t n);

/* The container with that name, regardless of its role, or NULL. */
const Container *pod_find_container(const Pod *pod, const char *name);

#define pod_foreach_container(container, spec)                                                   \
        for (size_t nth_container = 0; ((container) = pod_nth_container((spec), nth_container)); \
             nth_container++)

/* The container must belong to the spec. */
ContainerRole container_role(const PodSpec *spec, const Container *container);

/* The container's own policy, or the pod's. */
RestartPolicy container_own_restart_policy(const PodSpec *spec, const Container *container);

/* The amount of a resource that one container has, in any unit; negative if it is unset. */
typedef int64_t (*container_amount_t)(const Container *container);

/* The largest amount that the pod needs at any time, as Kubernetes computes it: the sum over all
 * containers that run together, or, if larger, an init container plus the sidecars before it.
 * Saturates. -1 if it is unset in all containers. */
int64_t pod_aggregate_amount(const PodSpec *spec, container_amount_t amount);

/* The limit of a container, otherwise that of its pod; 0: none. */
int64_t container_milli_cpu_limit(const PodSpec *spec, const Container *container);
int64_t container_memory_limit(const PodSpec *spec, const Container *container);

/* The CPU request of a container; without one, its limit. */
int64_t container_milli_cpu_request(const PodSpec *spec, const Container *container);
