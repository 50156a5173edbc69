/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/counted-containers.h"

#include "common/array.h"
#include "common/cleanup.h"

static CountedContainer *find_counted_container(const CountedContainers *usages, const char *id) {
        for (size_t i = 0; i < usages->n; i++)
                if (streq(usages->items[i].id, id))
                        return &usages->items[i];
        return NULL;
}

const CountedContainer *counted_containers_find(const CountedContainers *usages, const char *id) {
        return find_counted_container(usages, id);
}

static int add_counted_container(CountedContainers *usages, const char *id,
                                 CountedContainer **ret) {
        if (usages->n >= COUNTED_CONTAINERS_MAX)
                return -ENOBUFS;
        if (!ARRAY_RESERVE(usages->items, usages->n, 1))
                return -ENOMEM;
        usages->items[usages->n] = (CountedContainer){ .id = strdup(id) };
        if (!usages->items[usages->n].id)
                return -ENOMEM;
        *ret = &usages->items[usages->n++];
        return 0;
}

int counted_containers_set(CountedContainers *usages, const char *id, const ProcessUsage *usage,
                           uint64_t taken_at) {
        CountedContainer *found = find_counted_container(usages, id);
        int r = found ? 0 : add_counted_container(usages, id, &found);

        if (r < 0)
                return r;
        found->usage = *usage;
        found->taken_at = taken_at;
        return 0;
}

void counted_containers_remove(CountedContainers *usages, const char *id) {
        CountedContainer *found = find_counted_container(usages, id);

        if (!found)
                return;
        free(found->id);
        *found = usages->items[--usages->n];
}

void counted_containers_clear(CountedContainers *usages) {
        for (size_t i = 0; i < usages->n; i++)
                free(usages->items[i].id);
        free(usages->items);
        *usages = (CountedContainers){ 0 };
}
