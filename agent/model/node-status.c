/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/node-status.h"

#include "common/strv.h"

#include <stdlib.h>

const NodeSourceInfo node_source_infos[NODE_SOURCES_MAX] = {
        { "staticPodURL", NODE_CONDITION_PREFIX "StaticPodURLFailed" },
        { "source", NODE_CONDITION_PREFIX "SourceFailed" },
        { NODE_REPORT_NAME, NODE_CONDITION_PREFIX "ReportFailed" },
};

const char *node_source_condition_status(const NodeSourceStatus *source) {
        if (source->since == 0)
                return "Unknown";
        return source->has_failed ? "True" : "False";
}

const char *node_source_reason(const NodeSourceStatus *source) {
        bool is_report = streq(source->name, NODE_REPORT_NAME);

        if (source->since == 0)
                return "NotAsked";
        if (source->has_failed)
                return is_report            ? "ReportFailed"
                       : source->is_refused ? "SourceRefused"
                                            : "SourceFailed";
        return is_report ? "ReportSent" : "SourceInUse";
}

const NodeSourceStatus *node_sources_find(const NodeSources *sources, const char *name) {
        for (size_t i = 0; i < sources->n; i++)
                if (streq_ptr(sources->items[i].name, name))
                        return &sources->items[i];
        return NULL;
}

static void node_info_done(NodeInfo *info) {
        free(info->machine_id);
        free(info->system_uuid);
        free(info->boot_id);
        free(info->kernel_version);
        free(info->os_image);
        free(info->architecture);
}

void node_status_done(NodeStatus *status) {
        for (size_t i = 0; i < status->images.n; i++)
                strv_free(status->images.items[i].names);
        free(status->images.items);
        node_devices_list_done(&status->devices);
        strv_free(status->addresses);
        strv_free(status->volumes_in_use);
        strv_free(status->runtime_handlers);
        free(status->not_ready_reason);
        free(status->refused);
        free(status->hostname);
        node_info_done(&status->info);
        *status = (NodeStatus){ 0 };
}

/* Pods are evicted at once when less than a hard eviction threshold is available, so that amount is
 * not allocatable. */
static int64_t eviction_reserved_bytes(const EvictionPolicy *policy, EvictionSignal signal,
                                       int64_t capacity) {
        for (size_t i = 0; i < policy->n_thresholds; i++)
                if (policy->thresholds[i].signal == signal && policy->thresholds[i].grace_usec == 0)
                        return eviction_amount_of(&policy->thresholds[i].value, capacity);
        return 0;
}

NodeResources node_allocatable(const NodeResources *capacity, const NodeReservation *system,
                               const NodeReservation *kube, const EvictionPolicy *eviction) {
        NodeResources result = *capacity;

        result.cpu_milli = MAX(capacity->cpu_milli - system->cpu_milli - kube->cpu_milli, 0);
        /* Memory reserved for huge pages is not available to other allocations. */
        result.memory -= MAX(capacity->huge_pages_1gi, 0) + MAX(capacity->huge_pages_2mi, 0) +
                         system->memory + kube->memory +
                         eviction_reserved_bytes(eviction, EVICTION_MEMORY, capacity->memory);
        result.memory = MAX(result.memory, 0);
        result.ephemeral_storage -=
                system->ephemeral_storage + kube->ephemeral_storage +
                eviction_reserved_bytes(eviction, EVICTION_NODE_FS, capacity->ephemeral_storage);
        result.ephemeral_storage = MAX(result.ephemeral_storage, 0);
        return result;
}
