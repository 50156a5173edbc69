/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/status/eviction-candidate.h"

#include "agent/bundle/cgroups.h"
#include "agent/bundle/pod-paths.h"
#include "agent/model/containers.h"
#include "agent/model/quantity.h"
#include "agent/pods/pod/ephemeral-storage.h"
#include "common/cgroup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int64_t memory_request_of(const Container *container) {
        return container->resources.requests.memory.value;
}

static int64_t storage_request_of(const Container *container) {
        return container->resources.requests.ephemeral_storage.value;
}

static int copy_quantity_text(const Quantity *quantity, char **ret) {
        if (!quantity->text)
                return 0;
        *ret = strdup(quantity->text);
        return *ret ? 0 : -ENOMEM;
}

static int describe_eviction_container(const ContainerInstance *c, const char *pod_cgroup,
                                       EvictionContainer *ret) {
        const ResourceList *requests = &c->spec->resources.requests;
        char id[CONTAINER_ID_SIZE];

        *ret = (EvictionContainer){
                .name = strdup(c->spec->name),
                .memory_request = requests->memory.value,
                .storage_request = requests->ephemeral_storage.value,
        };
        if (!ret->name || copy_quantity_text(&requests->memory, &ret->memory_request_text) < 0 ||
            copy_quantity_text(&requests->ephemeral_storage, &ret->storage_request_text) < 0)
                return -ENOMEM;
        if (!container_machine_has_process(c->machine))
                return 0;
        container_instance_print_id(c, id);
        ret->cgroup = cgroup_of_container(pod_cgroup, id);
        return ret->cgroup ? 0 : -ENOMEM;
}

int describe_eviction_candidate(const PodInstance *pod, const PodContainers *containers,
                                EvictionCandidate *ret) {
        const BundleConfig *config = pod->context->bundle;
        const PodSpec *spec = &pod->pod->spec;
        const Quantity *request = &pod_level_resources(spec)->requests.memory;

        *ret = (EvictionCandidate){
                .uid = strdup(pod->pod->metadata.uid),
                .priority = spec->priority.value,
                .cgroup = cgroup_of_pod(config, pod_qos_class(spec), pod->pod->metadata.uid),
                .memory_request = quantity_is_set(request)
                                          ? request->value
                                          : pod_aggregate_amount(spec, memory_request_of),
                .storage_request = pod_aggregate_amount(spec, storage_request_of),
                .containers = calloc(containers->n + 1, sizeof(EvictionContainer)),
        };
        if (!ret->uid || !ret->cgroup || !ret->containers ||
            pod_storage_paths(config, pod->pod, &ret->storage_paths) < 0)
                return -ENOMEM;
        for (; ret->n_containers < containers->n; ret->n_containers++) {
                size_t i = ret->n_containers;
                int r = describe_eviction_container(pod_container_instance(containers->items[i]),
                                                    ret->cgroup, &ret->containers[i]);

                if (r < 0) {
                        ret->n_containers++;
                        return r;
                }
        }
        return 0;
}
