/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/plugins/resources-server.h"

#include "agent/model/containers.h"
#include "agent/plugins/plugin-protocol.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/grpc.h"
#include "common/strv.h"

#include <errno.h>
#include <stdlib.h>

/* ---- messages ---- */

typedef struct NumaNodeId {
        int64_t id;
} NumaNodeId;

typedef struct NodeTopology {
        LIST_OF(NumaNodeId) nodes;
} NodeTopology;

/* One device. */
typedef struct ContainerDevices {
        char *resource_name;
        char **ids;
        NodeTopology topology;
} ContainerDevices;

typedef struct ContainerResources {
        char *name;
        LIST_OF(ContainerDevices) devices;
} ContainerResources;

typedef struct PodResources {
        char *name;
        char *namespace;
        LIST_OF(ContainerResources) containers;
} PodResources;

struct PodResourcesList {
        LIST_OF(PodResources) pods;
        const DeviceManager *devices;
};

static const ProtobufRow numa_node_id_fields[] = { PROTOBUF_FIELD(1, NUMBER, NumaNodeId, id) };
static const ProtobufMessage numa_node_id_table = PROTOBUF_TABLE(NumaNodeId, numa_node_id_fields);

static const ProtobufRow node_topology_fields[] = {
        PROTOBUF_FIELD(1, MESSAGES, NodeTopology, nodes, .message = &numa_node_id_table),
};
static const ProtobufMessage node_topology_table =
        PROTOBUF_TABLE(NodeTopology, node_topology_fields);

static const ProtobufRow container_devices_fields[] = {
        PROTOBUF_FIELD(1, TEXT, ContainerDevices, resource_name),
        PROTOBUF_FIELD(2, TEXTS, ContainerDevices, ids),
        PROTOBUF_FIELD(3, MESSAGE, ContainerDevices, topology, .message = &node_topology_table),
};
static const ProtobufMessage container_devices_table =
        PROTOBUF_TABLE(ContainerDevices, container_devices_fields);

static const ProtobufRow container_resources_fields[] = {
        PROTOBUF_FIELD(1, TEXT, ContainerResources, name),
        PROTOBUF_FIELD(2, MESSAGES, ContainerResources, devices,
                       .message = &container_devices_table),
};
static const ProtobufMessage container_resources_table =
        PROTOBUF_TABLE(ContainerResources, container_resources_fields);

static const ProtobufRow pod_resources_fields[] = {
        PROTOBUF_FIELD(1, TEXT, PodResources, name),
        PROTOBUF_FIELD(2, TEXT, PodResources, namespace),
        PROTOBUF_FIELD(3, MESSAGES, PodResources, containers,
                       .message = &container_resources_table),
};
static const ProtobufMessage pod_resources_table =
        PROTOBUF_TABLE(PodResources, pod_resources_fields);

static const ProtobufRow pod_resources_list_fields[] = {
        PROTOBUF_FIELD(1, MESSAGES, PodResourcesList, pods, .message = &pod_resources_table),
};
static const ProtobufMessage pod_resources_list_table =
        PROTOBUF_TABLE(PodResourcesList, pod_resources_list_fields);

typedef struct AllocatableResources {
        LIST_OF(ContainerDevices) devices;
} AllocatableResources;

static const ProtobufRow allocatable_resources_fields[] = {
        PROTOBUF_FIELD(1, MESSAGES, AllocatableResources, devices,
                       .message = &container_devices_table),
};
static const ProtobufMessage allocatable_resources_table =
        PROTOBUF_TABLE(AllocatableResources, allocatable_resources_fields);

/* ---- filling them ---- */

PodResourcesList *pod_resources_list_new(const DeviceManager *devices) {
        PodResourcesList *list = calloc(1, sizeof(*list));

        if (list)
                list->devices = devices;
        return list;
}

PodResourcesList *pod_resources_list_free(PodResourcesList *list) {
        if (list)
                protobuf_done(&pod_resources_list_table, list);
        free(list);
        return NULL;
}

static const Device *find_listed_device(const DeviceManager *manager, const char *resource,
                                        const char *id) {
        const DeviceList *devices = device_manager_devices(manager, resource);

        for (size_t i = 0; devices && i < devices->n; i++)
                if (streq(devices->items[i].id, id))
                        return &devices->items[i];
        return NULL;
}

/* 'device' may be NULL if its plugin does not list it. */
static int fill_container_device(ContainerDevices *item, const char *resource, const char *id,
                                 const Device *device) {
        item->resource_name = strdup(resource);
        if (!item->resource_name || strv_append(&item->ids, id) < 0)
                return -ENOMEM;
        for (size_t i = 0; device && i < device->numa_nodes.n; i++) {
                NumaNodeId *node = ARRAY_APPEND(item->topology.nodes.items, item->topology.nodes.n);

                if (!node)
                        return -ENOMEM;
                node->id = device->numa_nodes.items[i];
        }
        return 0;
}

typedef struct DeviceCollection {
        const DeviceManager *devices;
        ContainerResources *container;
        int r;
} DeviceCollection;

static void collect_devices(const char *resource, char *const *ids, void *userdata) {
        DeviceCollection *collection = userdata;
        ContainerResources *container = collection->container;

        for (size_t i = 0; ids && ids[i] && collection->r >= 0; i++) {
                ContainerDevices *item =
                        ARRAY_APPEND(container->devices.items, container->devices.n);

                collection->r = item ? fill_container_device(item, resource, ids[i],
                                                             find_listed_device(collection->devices,
                                                                                resource, ids[i]))
                                     : -ENOMEM;
        }
}

static int add_container_devices(const PodResourcesList *list, PodResources *item, const Pod *pod,
                                 const Container *container) {
        ContainerResources *added = ARRAY_APPEND(item->containers.items, item->containers.n);
        DeviceCollection collection = { list->devices, added, 0 };

        if (!added)
                return -ENOMEM;
        added->name = strdup(container->name);
        if (!added->name)
                return -ENOMEM;
        device_manager_foreach_of(list->devices, pod->metadata.uid, container->name,
                                  collect_devices, &collection);
        return collection.r;
}

int pod_resources_list_add(PodResourcesList *list, const Pod *pod) {
        PodResources *item = ARRAY_APPEND(list->pods.items, list->pods.n);
        const Container *container;
        int r = 0;

        if (!item)
                return -ENOMEM;
        item->name = strdup(pod->metadata.name);
        item->namespace = strdup(pod->metadata.namespace);
        if (!item->name || !item->namespace)
                return -ENOMEM;
        pod_foreach_container(container, &pod->spec) {
                ContainerRole role = container_role(&pod->spec, container);

                if (role == ROLE_SIDECAR || role == ROLE_MAIN)
                        r = add_container_devices(list, item, pod, container);
                if (r < 0)
                        return r;
        }
        return 0;
}

int pod_resources_print_list(const PodResourcesList *list, Buffer *ret) {
        return protobuf_encode(&pod_resources_list_table, list, ret, GRPC_MESSAGE_MAX);
}

static int add_allocatable(const DeviceManager *manager, const char *resource,
                           AllocatableResources *ret) {
        const DeviceList *devices = device_manager_devices(manager, resource);
        int r = 0;

        for (size_t i = 0; devices && i < devices->n && r >= 0; i++) {
                ContainerDevices *item;

                if (!devices->items[i].is_healthy)
                        continue;
                item = ARRAY_APPEND(ret->devices.items, ret->devices.n);
                r = item ? fill_container_device(item, resource, devices->items[i].id,
                                                 &devices->items[i])
                         : -ENOMEM;
        }
        return r;
}

int pod_resources_print_allocatable(const DeviceManager *devices, Buffer *ret) {
        AllocatableResources answer = { 0 };
        NodeDevicesList resources = { 0 };
        int r = device_manager_list_resources(devices, &resources);

        for (size_t i = 0; i < resources.n && r >= 0; i++)
                r = add_allocatable(devices, resources.items[i].name, &answer);
        if (r >= 0)
                r = protobuf_encode(&allocatable_resources_table, &answer, ret, GRPC_MESSAGE_MAX);
        protobuf_done(&allocatable_resources_table, &answer);
        node_devices_list_done(&resources);
        return r;
}
