/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/resource.h"

#include "agent/model/containers.h"
#include "agent/model/quantity.h"

#include <string.h>

/* clang-format off */
const ResourceInfo resource_infos[N_RESOURCE_TYPES] = {
        [RESOURCE_CPU]               = { "cpu",               offsetof(ResourceList, cpu),               MEDIUM_UNSET, 0, NULL },
        [RESOURCE_EPHEMERAL_STORAGE] = { "ephemeral-storage", offsetof(ResourceList, ephemeral_storage), MEDIUM_UNSET, 0, NULL },
        [RESOURCE_HUGE_PAGES_1GI]    = { "hugepages-1Gi",     offsetof(ResourceList, huge_pages_1gi),
                                         MEDIUM_HUGE_PAGES_1GI, INT64_C(1) << 30, "1GB" },
        [RESOURCE_HUGE_PAGES_2MI]    = { "hugepages-2Mi",     offsetof(ResourceList, huge_pages_2mi),
                                         MEDIUM_HUGE_PAGES_2MI, INT64_C(2) << 20, "2MB" },
        [RESOURCE_MEMORY]            = { "memory",            offsetof(ResourceList, memory),            MEDIUM_UNSET, 0, NULL },
};
/* clang-format on */

const Quantity *resource_quantity(const ResourceList *list, ResourceType type) {
        return (const Quantity *) (const void *) ((const char *) list +
                                                  resource_infos[type].offset);
}

const Quantity *resource_find(const ResourceRequirements *requirements, const char *path,
                              ResourceType *ret_type) {
        static const char limits[] = "limits.", requests[] = "requests.";
        bool is_limit = strncmp(path, limits, strlen(limits)) == 0;
        const char *name = path + (is_limit ? strlen(limits) : strlen(requests));

        if (!is_limit && strncmp(path, requests, strlen(requests)) != 0)
                return NULL;
        for (ResourceType type = 0; type < N_RESOURCE_TYPES; type++)
                if (streq(name, resource_infos[type].name)) {
                        *ret_type = type;
                        return resource_quantity(
                                is_limit ? &requirements->limits : &requirements->requests, type);
                }
        return NULL;
}

bool pod_has_extended_resources(const PodSpec *spec) {
        const Container *container;

        pod_foreach_container(container, spec)
                if (container->resources.limits.extended.n > 0)
                        return true;
        return false;
}

static bool requests_huge_pages(const PodSpec *spec, ResourceType type) {
        const Container *container;

        if (quantity_is_set(resource_quantity(&pod_level_resources(spec)->limits, type)))
                return true;
        pod_foreach_container(container, spec)
                if (quantity_is_set(resource_quantity(&container->resources.limits, type)))
                        return true;
        return false;
}

ResourceType resource_huge_pages(const PodSpec *spec, Medium medium) {
        for (ResourceType type = 0; type < N_RESOURCE_TYPES; type++)
                if (resource_infos[type].page_size > 0 &&
                    (medium == MEDIUM_HUGE_PAGES || medium == resource_infos[type].medium) &&
                    requests_huge_pages(spec, type))
                        return type;
        return N_RESOURCE_TYPES;
}

static int64_t container_storage_limit(const Container *container) {
        const Quantity *limit = &container->resources.limits.ephemeral_storage;

        return quantity_is_set(limit) ? limit->value : -1;
}

static int64_t limit_of_1gi(const Container *container) {
        return container->resources.limits.huge_pages_1gi.value;
}

static int64_t limit_of_2mi(const Container *container) {
        return container->resources.limits.huge_pages_2mi.value;
}

int64_t resource_sum_of_limits(const PodSpec *spec, ResourceType type) {
        static const container_amount_t limits[N_RESOURCE_TYPES] = {
                [RESOURCE_EPHEMERAL_STORAGE] = container_storage_limit,
                [RESOURCE_HUGE_PAGES_1GI] = limit_of_1gi,
                [RESOURCE_HUGE_PAGES_2MI] = limit_of_2mi,
        };

        /* Only huge pages, among these, can be limited for all containers together. */
        if (resource_infos[type].page_size > 0 &&
            quantity_is_set(resource_quantity(&pod_level_resources(spec)->limits, type)))
                return resource_quantity(&pod_level_resources(spec)->limits, type)->value;
        return limits[type] ? pod_aggregate_amount(spec, limits[type]) : -1;
}
