/* SPDX-License-Identifier: Apache-2.0 */

/* Kubernetes' rules for huge pages, ephemeral storage, and emptyDirs that use them. */

#include "agent/manifest/validate-pod.h"
#include "agent/model/quantity.h"
#include "agent/model/resource.h"

#include <errno.h>
#include <stdio.h>

static int check_ephemeral_storage(const Rules *rules, const ResourceRequirements *resources,
                                   const char *path) {
        const Quantity *limit = &resources->limits.ephemeral_storage;
        const Quantity *request = &resources->requests.ephemeral_storage;
        char sentence[128];

        if (limit->value < 0)
                return rules_refuse(rules, "must not be negative",
                                    "%s.resources.limits.ephemeral-storage", path);
        if (request->value < 0)
                return rules_refuse(rules, "must not be negative",
                                    "%s.resources.requests.ephemeral-storage", path);
        if (!quantity_is_set(limit) || request->milli <= limit->milli)
                return 0;
        (void) snprintf(sentence, sizeof(sentence), "must be at most the limit, %.32s, not %.32s",
                        limit->text, request->text);
        return rules_refuse(rules, sentence, "%s.resources.requests.ephemeral-storage", path);
}

static int check_whole_pages(const Rules *rules, const Quantity *quantity, ResourceType type,
                             const char *path, const char *list) {
        const ResourceInfo *info = &resource_infos[type];
        char sentence[128];

        if (!quantity_is_set(quantity) ||
            (quantity->value > 0 && quantity->value % info->page_size == 0))
                return 0;
        (void) snprintf(sentence, sizeof(sentence), "%.32s is not positive integer multiple of %s",
                        quantity->text, info->name);
        return rules_refuse(rules, sentence, "%s.resources.%s.%s", path, list, info->name);
}

static int check_huge_pages(const Rules *rules, const ResourceRequirements *resources,
                            ResourceType type, const char *path) {
        const Quantity *limit = resource_quantity(&resources->limits, type);
        const Quantity *request = resource_quantity(&resources->requests, type);
        const char *name = resource_infos[type].name;
        char sentence[128];
        int r = check_whole_pages(rules, limit, type, path, "limits");

        if (r < 0)
                return r;
        r = check_whole_pages(rules, request, type, path, "requests");
        if (r < 0 || (!quantity_is_set(limit) && !quantity_is_set(request)))
                return r;
        if (!quantity_is_set(limit))
                return rules_refuse(rules, "Limit must be set for non overcommitable resources",
                                    "%s.resources.limits.%s", path, name);
        if (request->value != limit->value) {
                (void) snprintf(sentence, sizeof(sentence), "must be equal to %s limit of %.32s",
                                name, limit->text);
                return rules_refuse(rules, sentence, "%s.resources.requests.%s", path, name);
        }
        if (!quantity_is_set(&resources->requests.cpu) &&
            !quantity_is_set(&resources->requests.memory))
                return rules_refuse(rules, "HugePages require cpu or memory", "%s.resources", path);
        return 0;
}

static int check_whole_amount(const Rules *rules, const ExtendedResource *resource,
                              const char *path, const char *list) {
        if (resource->amount.value >= 0 && resource->amount.milli % 1000 == 0)
                return 0;
        return rules_refuse(rules, "must be a whole number of at least 0", "%s.resources.%s.%s",
                            path, list, resource->name);
}

static const ExtendedResource *find_extended_resource(const ResourceList *list, const char *name) {
        for (size_t i = 0; i < list->extended.n; i++)
                if (streq(list->extended.items[i].name, name))
                        return &list->extended.items[i];
        return NULL;
}

/* A device cannot be overcommitted. */
static int check_extended_request(const Rules *rules, const ExtendedResource *request,
                                  const ResourceList *limits, const char *path) {
        const ExtendedResource *limit = find_extended_resource(limits, request->name);
        char sentence[128];
        int r = check_whole_amount(rules, request, path, "requests");

        if (r < 0)
                return r;
        if (!limit)
                return rules_refuse(rules, "Limit must be set for non overcommitable resources",
                                    "%s.resources.limits.%s", path, request->name);
        if (limit->amount.value == request->amount.value)
                return 0;
        (void) snprintf(sentence, sizeof(sentence), "must be equal to the limit, %.32s, not %.32s",
                        limit->amount.text, request->amount.text);
        return rules_refuse(rules, sentence, "%s.resources.requests.%s", path, request->name);
}

int check_container_devices(const Rules *rules, const ContainerAt *at) {
        const ResourceRequirements *resources = &at->container->resources;
        int r = 0;

        for (size_t i = 0; i < resources->limits.extended.n && r >= 0; i++)
                r = check_whole_amount(rules, &resources->limits.extended.items[i], at->path,
                                       "limits");
        for (size_t i = 0; i < resources->requests.extended.n && r >= 0; i++)
                r = check_extended_request(rules, &resources->requests.extended.items[i],
                                           &resources->limits, at->path);
        return r;
}

/* Devices belong to single containers. */
static int check_no_devices(const Rules *rules, const ResourceList *list, const char *path) {
        if (list->extended.n == 0)
                return 0;
        return rules_refuse(
                rules, "is not supported for all containers together; set it for one container",
                "%s.%s", path, list->extended.items[0].name);
}

int check_container_storage(const Rules *rules, const ContainerAt *at) {
        const ResourceRequirements *resources = &at->container->resources;
        int r = check_ephemeral_storage(rules, resources, at->path);

        for (ResourceType type = 0; type < N_RESOURCE_TYPES && r >= 0; type++)
                if (resource_infos[type].page_size > 0)
                        r = check_huge_pages(rules, resources, type, at->path);
        return r;
}

/* The sum over all containers must not be less than their own requests. */
static int check_pod_huge_pages(const Rules *rules, ResourceType type) {
        PodSpec without = rules->pod->spec; /* a borrowed copy without pod-level limits */
        const Quantity *limit =
                resource_quantity(&pod_level_resources(&rules->pod->spec)->limits, type);
        int r = check_huge_pages(rules, pod_level_resources(&rules->pod->spec), type, "spec");

        without.resources = NULL;
        if (r < 0 || !quantity_is_set(limit) ||
            resource_sum_of_limits(&without, type) <= limit->value)
                return r;
        return rules_refuse(rules, "must be greater than or equal to aggregate container limits",
                            "spec.resources.limits.%s", resource_infos[type].name);
}

int check_pod_storage(const Rules *rules) {
        const ResourceRequirements *resources = pod_level_resources(&rules->pod->spec);
        int none = check_no_devices(rules, &resources->limits, "spec.resources.limits");

        if (none >= 0)
                none = check_no_devices(rules, &resources->requests, "spec.resources.requests");
        if (none >= 0)
                none = check_no_devices(rules, pod_overhead(&rules->pod->spec), "spec.overhead");
        if (none < 0)
                return none;
        for (ResourceType type = 0; type < N_RESOURCE_TYPES; type++) {
                if (resource_infos[type].page_size > 0) {
                        int r = check_pod_huge_pages(rules, type);

                        if (r < 0)
                                return r;
                        continue;
                }
                if (type == RESOURCE_CPU || type == RESOURCE_MEMORY)
                        continue;
                if (quantity_is_set(resource_quantity(&resources->limits, type)))
                        return rules_refuse(rules,
                                            "is not supported for all containers together; set it "
                                            "for one container",
                                            "spec.resources.limits.%s", resource_infos[type].name);
                if (quantity_is_set(resource_quantity(&resources->requests, type)))
                        return rules_refuse(rules,
                                            "is not supported for all containers together; set it "
                                            "for one container",
                                            "spec.resources.requests.%s",
                                            resource_infos[type].name);
        }
        return 0;
}

/* These messages are the kubelet's, which reports them only when it mounts. */
int check_empty_dir(const Rules *rules, size_t i) {
        const PodSpec *spec = &rules->pod->spec;
        const EmptyDirVolumeSource *source = spec->volumes.items[i].empty_dir;
        char sentence[160];

        if (quantity_is_set(&source->size_limit) && source->size_limit.value < 0)
                return rules_refuse(rules, "must not be negative",
                                    "spec.volumes[%zu].emptyDir.sizeLimit", i);
        if (source->medium < MEDIUM_HUGE_PAGES)
                return 0;
        if (resource_huge_pages(spec, source->medium) == N_RESOURCE_TYPES)
                (void) snprintf(sentence, sizeof(sentence),
                                "medium %s: hugePages storage requested, but there is no resource "
                                "request for huge pages",
                                medium_names[source->medium]);
        else if (source->medium == MEDIUM_HUGE_PAGES &&
                 resource_huge_pages(spec, MEDIUM_HUGE_PAGES_1GI) != N_RESOURCE_TYPES &&
                 resource_huge_pages(spec, MEDIUM_HUGE_PAGES_2MI) != N_RESOURCE_TYPES)
                (void) snprintf(sentence, sizeof(sentence),
                                "medium %s can't be used if container requests multiple huge page "
                                "sizes",
                                medium_names[source->medium]);
        else
                return 0;
        return rules_refuse(rules, sentence, "spec.volumes[%zu].emptyDir.medium", i);
}
