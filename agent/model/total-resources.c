/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/total-resources.h"

#include "agent/model/containers.h"
#include "agent/model/quantity.h"

#include <inttypes.h>
#include <stdio.h>

static int64_t amount_of(const Quantity *quantity, ResourceType type) {
        if (!quantity_is_set(quantity))
                return -1;
        return type == RESOURCE_CPU ? quantity->milli : quantity->value;
}

#define DEFINE_AMOUNTS(word, resource)                                                        \
        static int64_t request_of_##word(const Container *container) {                        \
                return amount_of(resource_quantity(&container->resources.requests, resource), \
                                 resource);                                                   \
        }                                                                                     \
        static int64_t limit_of_##word(const Container *container) {                          \
                return amount_of(resource_quantity(&container->resources.limits, resource),   \
                                 resource);                                                   \
        }

DEFINE_AMOUNTS(cpu, RESOURCE_CPU)
DEFINE_AMOUNTS(storage, RESOURCE_EPHEMERAL_STORAGE)
DEFINE_AMOUNTS(large_pages, RESOURCE_HUGE_PAGES_1GI)
DEFINE_AMOUNTS(small_pages, RESOURCE_HUGE_PAGES_2MI)
DEFINE_AMOUNTS(memory, RESOURCE_MEMORY)

static const struct {
        container_amount_t request;
        container_amount_t limit;
} amounts[N_RESOURCE_TYPES] = {
        [RESOURCE_CPU] = { request_of_cpu, limit_of_cpu },
        [RESOURCE_EPHEMERAL_STORAGE] = { request_of_storage, limit_of_storage },
        [RESOURCE_HUGE_PAGES_1GI] = { request_of_large_pages, limit_of_large_pages },
        [RESOURCE_HUGE_PAGES_2MI] = { request_of_small_pages, limit_of_small_pages },
        [RESOURCE_MEMORY] = { request_of_memory, limit_of_memory },
};

static int64_t total_without_overhead(const PodSpec *spec, const ResourceList *of_pod,
                                      ResourceType type, container_amount_t amount) {
        int64_t total = amount_of(resource_quantity(of_pod, type), type);

        return total >= 0 ? total : pod_aggregate_amount(spec, amount);
}

int64_t pod_total_request(const PodSpec *spec, ResourceType type) {
        int64_t total = total_without_overhead(spec, &pod_level_resources(spec)->requests, type,
                                               amounts[type].request);
        int64_t overhead = amount_of(resource_quantity(pod_overhead(spec), type), type);

        return overhead < 0 ? total : MAX(total, 0) + overhead;
}

/* The same for the sum of all limits (PodLimits). A resource without a limit before the overhead is
 * added has none afterwards. */
static int64_t pod_total_limit(const PodSpec *spec, ResourceType type) {
        int64_t total = total_without_overhead(spec, &pod_level_resources(spec)->limits, type,
                                               amounts[type].limit);
        int64_t overhead = amount_of(resource_quantity(pod_overhead(spec), type), type);

        return overhead < 0 || total <= 0 ? total : total + overhead;
}

/* Prints bytes with the largest binary suffix that leaves a whole number. */
static int set_amount(ResourceList *list, ResourceType type, int64_t amount) {
        static const char *const suffixes[] = { "", "Ki", "Mi", "Gi", "Ti" };
        Quantity *quantity = (Quantity *) (uintptr_t) resource_quantity(list, type);
        size_t i = 0;
        char text[32];

        if (amount < 0)
                return 0;
        for (; type != RESOURCE_CPU && amount > 0 && amount % KIB == 0 &&
               i + 1 < N_ELEMENTS(suffixes);
             i++)
                amount /= KIB;
        (void) snprintf(text, sizeof(text), "%" PRId64 "%s", amount,
                        type == RESOURCE_CPU ? "m" : suffixes[i]);
        return quantity_parse(text, quantity, NULL);
}

int pod_total_resources(const PodSpec *spec, ResourceRequirements *ret) {
        for (ResourceType type = 0; type < N_RESOURCE_TYPES; type++) {
                int r = set_amount(&ret->requests, type, pod_total_request(spec, type));

                if (r < 0)
                        return r;
                r = set_amount(&ret->limits, type, pod_total_limit(spec, type));
                if (r < 0)
                        return r;
        }
        return 0;
}
