/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The counts that a shim has reported about its containers: the latest response for each one. */

#include "common/process-usage.h"

#include <stddef.h>

enum {
        COUNTED_CONTAINERS_MAX = 256 /* maximum for a pod; further ones are ignored */
};

typedef struct CountedContainer {
        char *id;
        ProcessUsage usage;
        uint64_t taken_at; /* realtime */
} CountedContainer;

typedef struct CountedContainers {
        CountedContainer *items;
        size_t n;
} CountedContainers;

/* 0; -ENOBUFS if there are too many; -ENOMEM. */
int counted_containers_set(CountedContainers *usages, const char *id, const ProcessUsage *usage,
                           uint64_t taken_at);

/* NULL: there is none. */
const CountedContainer *counted_containers_find(const CountedContainers *usages, const char *id);

/* Removes the counts of a container that has ended; the container may be unknown. */
void counted_containers_remove(CountedContainers *usages, const char *id);

void counted_containers_clear(CountedContainers *usages);
