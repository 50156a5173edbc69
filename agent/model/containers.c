/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/containers.h"

#include "agent/model/quantity.h"
#include "common/saturating.h"

size_t pod_count_containers(const PodSpec *spec) {
        return spec->init_containers.n + spec->containers.n + spec->ephemeral_containers.n;
}

const Container *pod_nth_container(const PodSpec *spec, size_t n) {
        if (n < spec->init_containers.n)
                return &spec->init_containers.items[n];
        n -= spec->init_containers.n;
        if (n < spec->containers.n)
                return &spec->containers.items[n];
        n -= spec->containers.n;
        return n < spec->ephemeral_containers.n ? &spec->ephemeral_containers.items[n] : NULL;
}

static bool is_container_among(const Container *items, size_t n, const Container *container) {
        uintptr_t first = (uintptr_t) items, at = (uintptr_t) container;

        return at >= first && at < first + n * sizeof(*container);
}

ContainerRole container_role(const PodSpec *spec, const Container *container) {
        if (is_container_among(spec->ephemeral_containers.items, spec->ephemeral_containers.n,
                               container))
                return ROLE_EPHEMERAL;
        if (!is_container_among(spec->init_containers.items, spec->init_containers.n, container))
                return ROLE_MAIN;
        return container->restart_policy == RESTART_POLICY_ALWAYS ? ROLE_SIDECAR : ROLE_INIT;
}

RestartPolicy container_own_restart_policy(const PodSpec *spec, const Container *container) {
        bool is_own = container->restart_policy != RESTART_POLICY_UNSET &&
                      container->restart_policy != RESTART_POLICY_OTHER;

        return is_own ? container->restart_policy : spec->restart_policy;
}

const Container *pod_find_container(const Pod *pod, const char *name) {
        const Container *container;

        pod_foreach_container(container, &pod->spec)
                if (streq(container->name, name))
                        return container;
        return NULL;
}

int64_t pod_aggregate_amount(const PodSpec *spec, container_amount_t amount) {
        int64_t together = 0, sidecars = 0, most_of_init = 0;
        const Container *container;
        bool found = false;

        pod_foreach_container(container, spec) {
                ContainerRole role = container_role(spec, container);
                int64_t own = amount(container);

                if (role == ROLE_EPHEMERAL) /* the pod neither requests nor limits anything */
                        continue;
                found = found || own >= 0;
                own = MAX(own, 0);
                if (role == ROLE_INIT)
                        most_of_init = MAX(most_of_init, add_amounts_saturating(own, sidecars));
                else
                        together = add_amounts_saturating(together, own);
                if (role == ROLE_SIDECAR) {
                        sidecars = add_amounts_saturating(sidecars, own);
                        most_of_init = MAX(most_of_init, sidecars);
                }
        }
        return found ? MAX(together, most_of_init) : -1;
}

int64_t container_milli_cpu_limit(const PodSpec *spec, const Container *container) {
        int64_t own = container->resources.limits.cpu.milli;

        return own > 0 ? own : pod_level_resources(spec)->limits.cpu.milli;
}

int64_t container_memory_limit(const PodSpec *spec, const Container *container) {
        int64_t own = container->resources.limits.memory.value;

        return own > 0 ? own : pod_level_resources(spec)->limits.memory.value;
}

int64_t container_milli_cpu_request(const PodSpec *spec, const Container *container) {
        const Quantity *own = &container->resources.requests.cpu;

        return quantity_is_set(own) ? own->milli : container_milli_cpu_limit(spec, container);
}
