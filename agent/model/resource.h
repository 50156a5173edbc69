/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The resources of this node by their API names (cpu, memory, ephemeral-storage, hugepages-…), and
 * their units. */

#include "agent/model/pod.h"

typedef enum ResourceType {
        RESOURCE_CPU,
        RESOURCE_EPHEMERAL_STORAGE,
        RESOURCE_HUGE_PAGES_1GI,
        RESOURCE_HUGE_PAGES_2MI,
        RESOURCE_MEMORY,
        N_RESOURCE_TYPES,
} ResourceType;

typedef struct ResourceInfo {
        const char *name; /* "hugepages-2Mi" */
        size_t offset;    /* offset in a ResourceList */
        Medium medium;    /* for huge pages; else MEDIUM_UNSET */
        int64_t page_size;
        const char *page_name; /* in file names of cgroups and in the OCI spec: "2MB" */
} ResourceInfo;

extern const ResourceInfo resource_infos[N_RESOURCE_TYPES];

const Quantity *resource_quantity(const ResourceList *list, ResourceType type);

/* The quantity of "limits.memory" in these requirements; '*ret_type' is the resource. NULL for
 * other names. */
const Quantity *resource_find(const ResourceRequirements *requirements, const char *path,
                              ResourceType *ret_type);

/* Whether a container of the pod has a limit for a resource of this type. */
bool pod_has_extended_resources(const PodSpec *spec);

/* The first huge page size that a container of the pod requests; if 'medium' names a size, only
 * that size is considered. N_RESOURCE_TYPES: none. */
ResourceType resource_huge_pages(const PodSpec *spec, Medium medium);

/* The sum of the limits of all containers that run together, for resources other than CPU and
 * memory. Saturates; -1 if no container has a limit. */
int64_t resource_sum_of_limits(const PodSpec *spec, ResourceType type);
