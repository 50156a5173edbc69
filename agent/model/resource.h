/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The resources that this node has, by their names in the API, and how each is counted. */

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
        size_t offset;    /* in a ResourceList */
        Medium medium;    /* of huge pages; else MEDIUM_UNSET */
        int64_t page_size;
        const char *page_name; /* as control groups and OCI runtimes call it: "2MB" */
} ResourceInfo;

extern const ResourceInfo resource_infos[N_RESOURCE_TYPES];

const Quantity *resource_quantity(const ResourceList *list, ResourceType type);

/* "limits.memory" in these requirements. NULL for what is no resource's name; else '*ret_type' says
 * which. */
const Quantity *resource_find(const ResourceRequirements *requirements, const char *path,
                              ResourceType *ret_type);

/* The first size of huge pages that a container of the pod asks for, or, with 'medium' naming one,
 * that one if any does. N_RESOURCE_TYPES: none. */
ResourceType resource_huge_pages(const PodSpec *spec, Medium medium);

/* Of all containers that run at the same time, of what is neither CPU nor memory. Saturates; -1
 * where nobody limits it. */
int64_t resource_sum_of_limits(const PodSpec *spec, ResourceType type);
