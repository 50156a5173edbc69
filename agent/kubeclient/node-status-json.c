/* SPDX-License-Identifier: Apache-2.0 */
/* Formats the parts of a v1.NodeStatus. */

#include "agent/kubeclient/node-status-json.h"

#include "agent/model/quantity.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strv.h"

#include <inttypes.h>

static json_t *write_node_time(uint64_t realtime) {
        char buffer[RFC3339_SIZE];

        return json_string(format_rfc3339(buffer, realtime));
}

/* NULL: the condition does not belong to a source, or its source is not configured. */
static const NodeSourceStatus *find_reported_source(const NodeStatus *status, unsigned condition) {
        if (condition < NODE_REPORTED_SOURCES)
                return NULL;
        return node_sources_find(&status->sources,
                                 node_source_infos[condition - NODE_REPORTED_SOURCES].name);
}

const char *node_reported_condition_name(unsigned condition) {
        if (condition >= NODE_REPORTED_SOURCES)
                return node_source_infos[condition - NODE_REPORTED_SOURCES].condition;
        if (condition == NODE_REPORTED_REFUSED)
                return NODE_REFUSED_CONDITION;
        return condition == NODE_REPORTED_READY ? "Ready" : node_conditions[condition].name;
}

bool node_has_reported_condition(const NodeStatus *status, unsigned condition) {
        if (condition >= NODE_REPORTED_SOURCES)
                return find_reported_source(status, condition);
        if (condition == NODE_REPORTED_REFUSED)
                return status->refused;
        return condition == NODE_REPORTED_READY ||
               ((status->pressure.set | NODE_PRESSURE_CONDITIONS) & NODE_CONDITION_BIT(condition));
}

uint64_t node_reported_condition_since(const NodeStatus *status, unsigned condition) {
        const NodeSourceStatus *source = find_reported_source(status, condition);

        if (source)
                return source->since;
        return condition < N_NODE_CONDITIONS ? status->pressure.since[condition] : 0;
}

static json_t *write_reported_condition(unsigned condition, const char *is_true, uint64_t since,
                                        uint64_t now, const char *reason, const char *message) {
        return json_pack("{s:s, s:s, s:o, s:o, s:s, s:s}", "type",
                         node_reported_condition_name(condition), "status", is_true,
                         "lastHeartbeatTime", write_node_time(now), "lastTransitionTime",
                         write_node_time(since), "reason", reason, "message", message);
}

/* If a source is no longer configured, the condition reports this. */
static json_t *write_source_condition(const NodeStatus *status, unsigned condition, uint64_t since,
                                      uint64_t now) {
        const NodeSourceStatus *source = find_reported_source(status, condition);

        if (!source)
                return write_reported_condition(condition, "False", since, now, "NotConfigured",
                                                "");
        return write_reported_condition(condition, node_source_condition_status(source), since, now,
                                        node_source_reason(source), strna(source->message));
}

/* Reasons and messages are the kubelet's, so that monitoring tools recognize them. */
json_t *node_condition_to_json(const NodeStatus *status, unsigned condition, uint64_t since,
                               uint64_t now) {
        const NodeConditionInfo *info;
        bool is_set;

        if (condition >= NODE_REPORTED_SOURCES)
                return write_source_condition(status, condition, since, now);
        if (condition == NODE_REPORTED_READY && status->not_ready_reason)
                return write_reported_condition(condition, "False", since, now, "KubeletNotReady",
                                                status->not_ready_reason);
        if (condition == NODE_REPORTED_READY)
                return write_reported_condition(condition, "True", since, now, "KubeletReady",
                                                "kubelet is posting ready status");
        if (condition == NODE_REPORTED_REFUSED)
                return write_reported_condition(
                        condition, status->refused ? "True" : "False", since, now,
                        status->refused ? "Forbidden" : "NothingRefused", strna(status->refused));
        info = &node_conditions[condition];
        is_set = status->pressure.set & NODE_CONDITION_BIT(condition);
        return write_reported_condition(condition, is_set ? "True" : "False", since, now,
                                        is_set ? info->reason_true : info->reason_false,
                                        is_set ? info->message_true : info->message_false);
}

/* The values are in the canonical form of the server, so that equal values compare as equal. */
static json_t *write_quantity(const char *text) {
        Quantity quantity = { 0 };
        json_t *json;

        if (quantity_parse(text, &quantity, NULL) < 0)
                return NULL;
        json = json_string(quantity.text);
        quantity_done(&quantity);
        return json;
}

static json_t *write_bytes(int64_t bytes) {
        char text[32];

        if (bytes == NODE_RESOURCE_NONE)
                return NULL;
        if (bytes > 0 && bytes % 1024 == 0)
                (void) snprintf(text, sizeof(text), "%" PRId64 "Ki", bytes / 1024);
        else
                (void) snprintf(text, sizeof(text), "%" PRId64, bytes);
        return write_quantity(text);
}

static json_t *write_milli(int64_t milli) {
        char text[32];

        (void) snprintf(text, sizeof(text), "%" PRId64 "m", milli);
        return write_quantity(text);
}

static json_t *write_node_resources(const NodeResources *resources) {
        char pods[32];

        (void) snprintf(pods, sizeof(pods), "%" PRId64, resources->pods);
        return json_pack("{s:o, s:o, s:o*, s:o*, s:o, s:s}", "cpu",
                         write_milli(resources->cpu_milli), "ephemeral-storage",
                         write_bytes(resources->ephemeral_storage), "hugepages-1Gi",
                         write_bytes(resources->huge_pages_1gi), "hugepages-2Mi",
                         write_bytes(resources->huge_pages_2mi), "memory",
                         write_bytes(resources->memory), "pods", pods);
}

/* Names may sort before or after "memory"; no client depends on the order. */
static json_t *write_all_resources(const NodeResources *resources, const NodeDevicesList *devices,
                                   bool is_allocatable) {
        json_t *json = write_node_resources(resources);

        for (size_t i = 0; i < devices->n; i++) {
                const NodeDevices *item = &devices->items[i];
                char number[32];

                (void) snprintf(number, sizeof(number), "%" PRId64,
                                is_allocatable ? item->allocatable : item->capacity);
                (void) json_object_set_new(json, item->name, json_string(number));
        }
        return json;
}

static json_t *write_addresses(const NodeStatus *status) {
        json_t *list = json_array();

        strv_foreach(address, status->addresses)
                (void) json_array_append_new(
                        list, json_pack("{s:s, s:s}", "type", "InternalIP", "address", *address));
        if (status->hostname)
                (void) json_array_append_new(list, json_pack("{s:s, s:s}", "type", "Hostname",
                                                             "address", status->hostname));
        return list;
}

static const char *text_or_empty(const char *text) {
        return text ? text : "";
}

static json_t *write_node_info(const NodeInfo *info) {
        json_t *json = json_pack(
                "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "machineID",
                text_or_empty(info->machine_id), "systemUUID", text_or_empty(info->system_uuid),
                "bootID", text_or_empty(info->boot_id), "kernelVersion",
                text_or_empty(info->kernel_version), "osImage", text_or_empty(info->os_image),
                "containerRuntimeVersion", NODE_RUNTIME_VERSION, "kubeletVersion",
                NODE_KUBELET_VERSION, "kubeProxyVersion", "", "operatingSystem", "linux",
                "architecture", text_or_empty(info->architecture));

        if (json && info->swap > 0)
                (void) json_object_set_new(json, "swap",
                                           json_pack("{s:I}", "capacity", (json_int_t) info->swap));
        return json;
}

/* The features that this agent supports, sorted. An API server requires a feature before it assigns
 * pods or edits that need it to the node (component-helpers, nodedeclaredfeatures). */
static json_t *write_declared_features(void) {
        return json_pack("[s, s, s]", "ExtendWebSocketsToKubelet",
                         "InPlacePodLevelResourcesVerticalScaling",
                         "RestartAllContainersOnContainerExits");
}

static json_t *write_image(const NodeImage *image) {
        json_t *names = json_array();

        strv_foreach(name, image->names)
                if (json_array_size(names) < NODE_IMAGE_NAMES_MAX)
                        (void) json_array_append_new(names, json_string(*name));
        return json_pack("{s:o, s:I}", "names", names, "sizeBytes", (json_int_t) image->size_bytes);
}

static json_t *write_images(const NodeStatus *status) {
        json_t *list = json_array();

        for (size_t i = 0; i < MIN(status->images.n, (size_t) NODE_IMAGES_MAX); i++)
                (void) json_array_append_new(list, write_image(&status->images.items[i]));
        return list;
}

static json_t *write_runtime_handlers(const NodeStatus *status) {
        json_t *list = json_array();

        strv_foreach(name, status->runtime_handlers)
                (void) json_array_append_new(list, json_pack("{s:s, s:{s:b, s:b}}", "name", *name,
                                                             "features", "recursiveReadOnlyMounts",
                                                             1, "userNamespaces",
                                                             (int) status->has_user_namespaces));
        return list;
}

static json_t *write_volumes_in_use(char **volumes) {
        json_t *list = json_array();

        strv_foreach(volume, volumes)
                (void) json_array_append_new(list, json_string(*volume));
        return list;
}

json_t *node_status_to_json(const NodeStatus *status) {
        json_t *json = json_pack(
                "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:b}}", "capacity",
                write_all_resources(&status->capacity, &status->devices, false), "allocatable",
                write_all_resources(&status->allocatable, &status->devices, true), "addresses",
                write_addresses(status), "nodeInfo", write_node_info(&status->info), "images",
                write_images(status), "runtimeHandlers", write_runtime_handlers(status),
                "declaredFeatures", write_declared_features(), "features",
                "supplementalGroupsPolicy", 1);

        if (json && status->volumes_in_use)
                (void) json_object_set_new(json, "volumesInUse",
                                           write_volumes_in_use(status->volumes_in_use));
        if (json && status->port > 0)
                (void) json_object_set_new(
                        json, "daemonEndpoints",
                        json_pack("{s:{s:i}}", "kubeletEndpoint", "Port", (int) status->port));
        return json;
}
