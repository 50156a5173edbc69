/* SPDX-License-Identifier: Apache-2.0 */

/* Pod-level resources: their defaults from those of the containers, and their validation. */

#include "agent/manifest/validate-pod.h"
#include "agent/model/containers.h"
#include "agent/model/qos.h"
#include "agent/model/quantity.h"
#include "agent/model/resource.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct PodResource {
        const char *name;
        size_t offset; /* offset in a ResourceList */
        bool in_milli; /* in thousandths */
        container_amount_t request;
} PodResource;

static int64_t explicit_cpu_request(const Container *container) {
        const Quantity *request = &container->resources.requests.cpu;

        return quantity_is_set(request) ? request->milli : -1;
}

static int64_t explicit_memory_request(const Container *container) {
        const Quantity *request = &container->resources.requests.memory;

        return quantity_is_set(request) ? request->value : -1;
}

static const PodResource resources[] = {
        { "cpu", offsetof(ResourceList, cpu), true, explicit_cpu_request },
        { "memory", offsetof(ResourceList, memory), false, explicit_memory_request },
};

static const Quantity *quantity_in(const ResourceList *list, const PodResource *resource) {
        return (const Quantity *) (const void *) ((const char *) list + resource->offset);
}

static int64_t resource_amount(const Quantity *quantity, const PodResource *resource) {
        return resource->in_milli ? quantity->milli : quantity->value;
}

static int set_default_pod_resource(PodSpec *spec, const PodResource *resource) {
        const Quantity *limit = quantity_in(&spec->resources->limits, resource);
        Quantity *request =
                (Quantity *) (void *) ((char *) &spec->resources->requests + resource->offset);
        int64_t sum = pod_aggregate_amount(spec, resource->request);
        char text[32];

        if (quantity_is_set(request))
                return 0;
        if (sum >= 0) {
                (void) snprintf(text, sizeof(text), "%" PRId64 "%s", sum,
                                resource->in_milli ? "m" : "");
                return quantity_parse(text, request, NULL);
        }
        return quantity_is_set(limit) ? quantity_parse(limit->text, request, NULL) : 0;
}

static int set_default_huge_pages_request(PodSpec *spec, ResourceType type) {
        const Quantity *limit = resource_quantity(&spec->resources->limits, type);
        Quantity *request =
                (Quantity *) (uintptr_t) resource_quantity(&spec->resources->requests, type);

        return quantity_is_set(limit) && !quantity_is_set(request)
                       ? quantity_parse(limit->text, request, NULL)
                       : 0;
}

int pod_set_default_resources(PodSpec *spec) {
        int r = 0;

        pod_drop_empty_resources(spec);
        for (size_t i = 0; r >= 0 && i < N_ELEMENTS(resources) && pod_has_resources(spec); i++)
                r = set_default_pod_resource(spec, &resources[i]);
        for (ResourceType type = 0; r >= 0 && type < N_RESOURCE_TYPES && spec->resources; type++)
                if (resource_infos[type].page_size > 0)
                        r = set_default_huge_pages_request(spec, type);
        return r;
}

/* Init containers are excluded. The API server does not check them either, because the pod's cgroup
 * limits them. */
static int check_container_resources(const Rules *rules, const PodResource *resource) {
        const PodSpec *spec = &rules->pod->spec;
        const Quantity *limit = quantity_in(&pod_level_resources(spec)->limits, resource);
        char text[128];

        for (size_t i = spec->init_containers.n;
             i < pod_count_containers(spec) && quantity_is_set(limit); i++) {
                ContainerAt at = container_at(rules, i);
                const Quantity *own = quantity_in(&at.container->resources.limits, resource);

                if (quantity_is_set(own) && own->milli > limit->milli) {
                        (void) snprintf(text, sizeof(text),
                                        "must be less than or equal to pod limits of %.60s",
                                        limit->text);
                        return rules_refuse(rules, text, "%s.resources.limits.%s", at.path,
                                            resource->name);
                }
        }
        return 0;
}

static int check_pod_resource(const Rules *rules, const PodResource *resource) {
        const PodSpec *spec = &rules->pod->spec;
        const Quantity *limit = quantity_in(&pod_level_resources(spec)->limits, resource);
        const Quantity *request = quantity_in(&pod_level_resources(spec)->requests, resource);
        char text[128];
        int r;

        if (quantity_is_set(limit) && limit->milli < 0)
                return rules_refuse(rules, "must not be negative", "spec.resources.limits.%s",
                                    resource->name);
        if (quantity_is_set(request) && request->milli < 0)
                return rules_refuse(rules, "must not be negative", "spec.resources.requests.%s",
                                    resource->name);
        r = check_container_resources(rules, resource);
        if (r < 0)
                return r;
        /* A pod-level request that is unset is defaulted from the containers. */
        if (quantity_is_set(limit) && request->milli > limit->milli) {
                (void) snprintf(text, sizeof(text), "must be at most the limit, %.40s, not %.40s",
                                limit->text, request->text);
                return rules_refuse(rules, text, "spec.resources.requests.%s", resource->name);
        }
        if (quantity_is_set(request) &&
            pod_aggregate_amount(spec, resource->request) > resource_amount(request, resource))
                return rules_refuse(rules,
                                    "must be greater than or equal to aggregate container requests",
                                    "spec.resources.requests.%s", resource->name);
        return 0;
}

int check_pod_resources(const Rules *rules) {
        int r = 0;

        for (size_t i = 0; i < N_ELEMENTS(resources) && r >= 0; i++)
                r = check_pod_resource(rules, &resources[i]);
        return r;
}
