/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/huge-pages.h"

#include "agent/model/quantity.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <fcntl.h>
#include <inttypes.h>

static bool is_huge_pages_resource(ResourceType type) {
        return resource_infos[type].page_size > 0;
}

/* <directory>/hugepages-2048kB/nr_hugepages. -ENOENT if the kernel does not support the size. */
static int read_huge_page_count(const char *directory, ResourceType type, int64_t *ret) {
        cleanup_free char *path = NULL, *text = NULL;
        int r;

        path = text_format("%s/hugepages-%" PRId64 "kB/nr_hugepages", directory,
                           resource_infos[type].page_size / (int64_t) KIB);
        if (!path)
                return -ENOMEM;
        r = read_file_at(AT_FDCWD, path, KIB * 64, &text, NULL);
        if (r < 0)
                return r;
        *ret = strtoll(text, NULL, 10);
        return 0;
}

unsigned huge_pages_limitable(const char *directory) {
        unsigned mask = 0;
        int64_t count;

        for (ResourceType type = 0; type < N_RESOURCE_TYPES; type++)
                if (is_huge_pages_resource(type) &&
                    read_huge_page_count(directory, type, &count) >= 0)
                        mask |= HUGE_PAGES_BIT(type);
        return cgroup_has_controller("hugetlb") ? mask : 0;
}

int huge_pages_check(const PodSpec *spec, const char *directory, Error *reterr) {
        for (ResourceType type = 0; type < N_RESOURCE_TYPES; type++) {
                const ResourceInfo *info = &resource_infos[type];
                int64_t wanted = is_huge_pages_resource(type) ? resource_sum_of_limits(spec, type)
                                                              : 0,
                        count = 0;

                if (wanted == 0)
                        continue;
                (void) read_huge_page_count(directory, type, &count);
                if (count < wanted / info->page_size)
                        return error_setf(reterr, ENOSPC,
                                          "Node didn't have enough resource: %s, requested: "
                                          "%" PRId64 ", capacity: %" PRId64,
                                          info->name, wanted, count * info->page_size);
        }
        return 0;
}

size_t huge_pages_cgroup_values(const PodSpec *spec, int cgroup_version, unsigned mask,
                                CgroupValue ret[N_RESOURCE_TYPES]) {
        static const char *const files[N_RESOURCE_TYPES][2] = {
                [RESOURCE_HUGE_PAGES_1GI] = { "hugetlb.1GB.limit_in_bytes", "hugetlb.1GB.max" },
                [RESOURCE_HUGE_PAGES_2MI] = { "hugetlb.2MB.limit_in_bytes", "hugetlb.2MB.max" },
        };
        size_t n = 0;

        for (ResourceType type = 0; type < N_RESOURCE_TYPES; type++) {
                if (!is_huge_pages_resource(type) || !(mask & HUGE_PAGES_BIT(type)))
                        continue;
                ret[n] = (CgroupValue){ .controller = "hugetlb",
                                        .file = files[type][cgroup_version == 2] };
                (void) snprintf(ret[n].value, sizeof(ret[n].value), "%" PRId64,
                                resource_sum_of_limits(spec, type));
                n++;
        }
        return n;
}

/* A container without its own limit has the pod's. */
static int64_t find_huge_pages_limit(const PodSpec *spec, const Container *container,
                                     ResourceType type) {
        const Quantity *own = resource_quantity(&container->resources.limits, type);

        return quantity_is_set(own)
                       ? own->value
                       : resource_quantity(&pod_level_resources(spec)->limits, type)->value;
}

json_t *huge_pages_limits(const PodSpec *spec, const Container *container, unsigned mask) {
        json_t *limits = mask ? json_array() : NULL;

        for (ResourceType type = 0; type < N_RESOURCE_TYPES && limits; type++)
                if (mask & HUGE_PAGES_BIT(type))
                        json_array_append_new(limits,
                                              json_pack("{s:s, s:I}", "pageSize",
                                                        resource_infos[type].page_name, "limit",
                                                        (json_int_t) find_huge_pages_limit(
                                                                spec, container, type)));
        return limits;
}

const char *huge_pages_mount_option(const PodSpec *spec, Medium medium) {
        switch (resource_huge_pages(spec, medium)) {
        case RESOURCE_HUGE_PAGES_1GI:
                return "pagesize=1G";
        case RESOURCE_HUGE_PAGES_2MI:
                return "pagesize=2M";
        case RESOURCE_CPU:
        case RESOURCE_EPHEMERAL_STORAGE:
        case RESOURCE_MEMORY:
        case N_RESOURCE_TYPES:
                break;
        }
        return NULL;
}
