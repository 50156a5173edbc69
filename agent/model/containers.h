/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All containers of a pod, those of init among them: what each of them is, how to walk them, and
 * what they ask for together. Pure. */

#include "agent/model/pod.h"

typedef enum ContainerRole {
        ROLE_INIT,    /* runs to its end before what follows */
        ROLE_SIDECAR, /* of init, with restartPolicy Always: runs beside all that follows */
        ROLE_MAIN,
} ContainerRole;

size_t pod_count_containers(const PodSpec *spec);

/* Those of init first, then the others, as the spec has them; NULL beyond the last. */
const Container *pod_nth_container(const PodSpec *spec, size_t n);

/* The container of that name, of init or not, or NULL. */
const Container *pod_find_container(const Pod *pod, const char *name);

#define pod_foreach_container(container, spec)                                                   \
        for (size_t nth_container = 0; ((container) = pod_nth_container((spec), nth_container)); \
             nth_container++)

/* The container is one of the spec's own. */
ContainerRole container_role(const PodSpec *spec, const Container *container);

/* What a container has of a resource, counted in whatever unit; a negative number where it has
 * nothing to say. */
typedef int64_t (*container_amount_t)(const Container *container);

/* What the pod needs at any time, as Kubernetes reckons it: all that runs on together, or, if that
 * is more, one container of init beside the sidecars before it. Saturates. -1 where no container
 * has anything to say. */
int64_t pod_aggregate_amount(const PodSpec *spec, container_amount_t amount);
