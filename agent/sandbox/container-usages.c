/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/container-usages.h"

#include "common/cleanup.h"

static ContainerUsage *find_container_usage(const ContainerUsages *usages, const char *id) {
        for (size_t i = 0; i < usages->n; i++)
                if (streq(usages->items[i].id, id))
                        return &usages->items[i];
        return NULL;
}

const ContainerUsage *container_usages_find(const ContainerUsages *usages, const char *id) {
        return find_container_usage(usages, id);
}

static int add_container_usage(ContainerUsages *usages, const char *id, ContainerUsage **ret) {
        ContainerUsage *more;

        if (usages->n >= CONTAINER_USAGES_MAX)
                return -ENOBUFS;
        more = reallocarray(usages->items, usages->n + 1, sizeof(*more));
        if (!more)
                return -ENOMEM;
        usages->items = more;
        more[usages->n] = (ContainerUsage){ .id = strdup(id) };
        if (!more[usages->n].id)
                return -ENOMEM;
        *ret = &more[usages->n++];
        return 0;
}

int container_usages_set(ContainerUsages *usages, const char *id, const ProcessUsage *usage,
                         uint64_t taken_at) {
        ContainerUsage *found = find_container_usage(usages, id);
        int r = found ? 0 : add_container_usage(usages, id, &found);

        if (r < 0)
                return r;
        found->usage = *usage;
        found->taken_at = taken_at;
        return 0;
}

void container_usages_remove(ContainerUsages *usages, const char *id) {
        ContainerUsage *found = find_container_usage(usages, id);

        if (!found)
                return;
        free(found->id);
        *found = usages->items[--usages->n];
}

void container_usages_clear(ContainerUsages *usages) {
        for (size_t i = 0; i < usages->n; i++)
                free(usages->items[i].id);
        free(usages->items);
        *usages = (ContainerUsages){ 0 };
}
