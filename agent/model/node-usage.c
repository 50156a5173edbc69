/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/node-usage.h"

#include "agent/model/total-resources.h"
#include "common/macros.h"

const unsigned node_amount_order[N_NODE_AMOUNTS] = {
        NODE_PODS,
        RESOURCE_CPU,
        RESOURCE_MEMORY,
        RESOURCE_EPHEMERAL_STORAGE,
        RESOURCE_HUGE_PAGES_1GI,
        RESOURCE_HUGE_PAGES_2MI,
};

unsigned node_usage_first(const NodeUsage *usage) {
        const unsigned *amount = node_amount_order;

        while (usage->amounts[*amount] == 0)
                amount++;
        return *amount;
}

const char *node_amount_name(unsigned amount) {
        return amount == NODE_PODS ? "pods" : resource_infos[amount].name;
}

NodeUsage node_usage_of_pod(const PodSpec *spec) {
        NodeUsage usage = { .amounts[NODE_PODS] = 1 };

        for (ResourceType type = 0; type < N_RESOURCE_TYPES; type++)
                usage.amounts[type] = MAX(pod_total_request(spec, type), 0);
        return usage;
}

void node_usage_add(NodeUsage *usage, const NodeUsage *more) {
        for (unsigned i = 0; i < N_NODE_AMOUNTS; i++)
                usage->amounts[i] += more->amounts[i];
}

NodeUsage node_usage_capacity(const NodeResources *allocatable) {
        return (NodeUsage){ .amounts = {
                                    [NODE_PODS] = allocatable->pods,
                                    [RESOURCE_CPU] = allocatable->cpu_milli,
                                    [RESOURCE_EPHEMERAL_STORAGE] = allocatable->ephemeral_storage,
                                    [RESOURCE_HUGE_PAGES_1GI] = MAX(allocatable->huge_pages_1gi, 0),
                                    [RESOURCE_HUGE_PAGES_2MI] = MAX(allocatable->huge_pages_2mi, 0),
                                    [RESOURCE_MEMORY] = allocatable->memory,
                            } };
}

bool node_usage_find_missing(const NodeUsage *capacity, const NodeUsage *used,
                             const NodeUsage *requested, NodeUsage *ret) {
        bool is_short = false;

        *ret = (NodeUsage){ 0 };
        for (unsigned i = 0; i < N_NODE_AMOUNTS; i++) {
                int64_t missing = requested->amounts[i] - (capacity->amounts[i] - used->amounts[i]);

                if (requested->amounts[i] <= 0 || missing <= 0)
                        continue;
                ret->amounts[i] = missing;
                is_short = true;
        }
        return is_short;
}
