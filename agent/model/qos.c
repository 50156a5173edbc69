/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/qos.h"

#include "agent/model/containers.h"

const char *const qos_class_names[N_QOS_CLASSES] = {
        [QOS_GUARANTEED] = "Guaranteed",
        [QOS_BURSTABLE] = "Burstable",
        [QOS_BEST_EFFORT] = "BestEffort",
};

/* For the QoS class, a quantity of zero counts as unset. */
static bool is_positive(const Quantity *quantity) {
        return quantity_is_set(quantity) && quantity->milli > 0;
}

static bool is_guaranteed(const Quantity *limit, const Quantity *request) {
        return is_positive(limit) && request->milli == limit->milli;
}

static bool has_cpu_or_memory(const ResourceRequirements *resources) {
        return is_positive(&resources->limits.cpu) || is_positive(&resources->limits.memory) ||
               is_positive(&resources->requests.cpu) || is_positive(&resources->requests.memory);
}

static bool has_requests_equal_to_limits(const ResourceRequirements *resources) {
        return is_guaranteed(&resources->limits.cpu, &resources->requests.cpu) &&
               is_guaranteed(&resources->limits.memory, &resources->requests.memory);
}

bool pod_has_resources(const PodSpec *spec) {
        const ResourceRequirements *resources = pod_level_resources(spec);

        return quantity_is_set(&resources->limits.cpu) ||
               quantity_is_set(&resources->limits.memory) ||
               quantity_is_set(&resources->requests.cpu) ||
               quantity_is_set(&resources->requests.memory);
}

QosClass pod_qos_class(const PodSpec *spec) {
        bool all_guaranteed = spec->containers.n > 0, any = false;
        const Container *container;

        pod_foreach_container(container, spec) {
                if (container_role(spec, container) == ROLE_EPHEMERAL)
                        continue;
                any = any || has_cpu_or_memory(&container->resources);
                all_guaranteed =
                        all_guaranteed && has_requests_equal_to_limits(&container->resources);
        }
        if (pod_has_resources(spec)) {
                any = has_cpu_or_memory(pod_level_resources(spec));
                all_guaranteed = has_requests_equal_to_limits(pod_level_resources(spec));
        }
        if (!any)
                return QOS_BEST_EFFORT;
        return all_guaranteed ? QOS_GUARANTEED : QOS_BURSTABLE;
}
