/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a shim has counted of its containers: the last answer for each. */

#include "common/process-usage.h"

#include <stddef.h>

enum {
        CONTAINER_USAGES_MAX = 256 /* of a pod; more are not kept */
};

typedef struct ContainerUsage {
        char *id;
        ProcessUsage usage;
        uint64_t taken_at; /* realtime */
} ContainerUsage;

typedef struct ContainerUsages {
        ContainerUsage *items;
        size_t n;
} ContainerUsages;

/* 0; -ENOBUFS if there are too many; -ENOMEM. */
int container_usages_set(ContainerUsages *usages, const char *id, const ProcessUsage *usage,
                         uint64_t taken_at);

/* NULL: there is none. */
const ContainerUsage *container_usages_find(const ContainerUsages *usages, const char *id);

/* Of a container that has ended; it may be unknown. */
void container_usages_remove(ContainerUsages *usages, const char *id);

void container_usages_clear(ContainerUsages *usages);
