/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/plugin-host/device-plugin-messages.h"

#include "agent/model/names.h"
#include "agent/model/values-message.h"
#include "common/array.h"
#include "common/strv.h"

#include <errno.h>
#include <stdlib.h>

/* ---- registration and options ---- */

static const ProtobufRow register_request_fields[] = {
        PROTOBUF_FIELD(1, TEXT, RegisterRequest, version),
        PROTOBUF_FIELD(2, TEXT, RegisterRequest, endpoint),
        PROTOBUF_FIELD(3, TEXT, RegisterRequest, resource_name),
};
const ProtobufMessage register_request_table =
        PROTOBUF_TABLE(RegisterRequest, register_request_fields);

static const ProtobufRow device_plugin_options_fields[] = {
        PROTOBUF_FIELD(1, FLAG, DevicePluginOptions, pre_start_required),
        PROTOBUF_FIELD(2, FLAG, DevicePluginOptions, has_preferred_allocation),
};
const ProtobufMessage device_plugin_options_table =
        PROTOBUF_TABLE(DevicePluginOptions, device_plugin_options_fields);

bool is_extended_resource_name(const char *name) {
        return check_extended_resource(name, NULL) >= 0;
}

/* ---- lists of devices ---- */

typedef struct NumaNode {
        int64_t id;
} NumaNode;

typedef struct ListedDevice {
        char *id;
        char *health;
        struct {
                LIST_OF(NumaNode) nodes;
        } topology;
} ListedDevice;

typedef struct DeviceListMessage {
        LIST_OF(ListedDevice) devices;
} DeviceListMessage;

typedef struct TopologyInfo {
        LIST_OF(NumaNode) nodes;
} TopologyInfo;

static const ProtobufRow numa_node_fields[] = { PROTOBUF_FIELD(1, NUMBER, NumaNode, id) };
static const ProtobufMessage numa_node_table = PROTOBUF_TABLE(NumaNode, numa_node_fields);

static const ProtobufRow topology_fields[] = {
        PROTOBUF_FIELD(1, MESSAGES, TopologyInfo, nodes, .message = &numa_node_table),
};
static const ProtobufMessage topology_table = PROTOBUF_TABLE(TopologyInfo, topology_fields);

static const ProtobufRow listed_device_fields[] = {
        PROTOBUF_FIELD(1, TEXT, ListedDevice, id),
        PROTOBUF_FIELD(2, TEXT, ListedDevice, health),
        PROTOBUF_FIELD(3, MESSAGE, ListedDevice, topology, .message = &topology_table),
};
static const ProtobufMessage listed_device_table =
        PROTOBUF_TABLE(ListedDevice, listed_device_fields);

static const ProtobufRow device_list_fields[] = {
        PROTOBUF_FIELD(1, MESSAGES, DeviceListMessage, devices, .message = &listed_device_table),
};
static const ProtobufMessage device_list_table =
        PROTOBUF_TABLE(DeviceListMessage, device_list_fields);

static int add_listed_device(DeviceList *list, ListedDevice *listed) {
        Device *device = ARRAY_APPEND(list->items, list->n);
        size_t n = listed->topology.nodes.n;

        if (!device)
                return -ENOMEM;
        device->id = listed->id ? TAKE_PTR(listed->id) : strdup("");
        device->is_healthy = streq(strna(listed->health), "Healthy");
        device->numa_nodes.items = n > 0 ? calloc(n, sizeof(*device->numa_nodes.items)) : NULL;
        if (!device->id || (n > 0 && !device->numa_nodes.items))
                return -ENOMEM;
        device->numa_nodes.n = n;
        for (size_t i = 0; i < n; i++)
                device->numa_nodes.items[i] = listed->topology.nodes.items[i].id;
        return 0;
}

int decode_device_list(const char *data, size_t length, DeviceList *ret, Error *reterr) {
        DeviceListMessage message = { 0 };
        DeviceList list = { 0 };
        int r = protobuf_decode(&device_list_table, data, length, &message, reterr);

        for (size_t i = 0; i < message.devices.n && r >= 0; i++)
                r = add_listed_device(&list, &message.devices.items[i]);
        protobuf_done(&device_list_table, &message);
        if (r < 0)
                device_list_done(&list);
        else
                *ret = list;
        return r;
}

/* ---- requests ---- */

typedef struct IdList {
        char **ids;
} IdList;

static const ProtobufRow id_list_fields[] = { PROTOBUF_FIELD(1, TEXTS, IdList, ids) };
static const ProtobufMessage id_list_table = PROTOBUF_TABLE(IdList, id_list_fields);

typedef struct IdLists {
        LIST_OF(IdList) containers;
} IdLists;

static const ProtobufRow id_lists_fields[] = {
        PROTOBUF_FIELD(1, MESSAGES, IdLists, containers, .message = &id_list_table),
};
static const ProtobufMessage id_lists_table = PROTOBUF_TABLE(IdLists, id_lists_fields);

typedef struct PreferredRequest {
        char **available;
        char **included;
        int64_t size;
} PreferredRequest;

static const ProtobufRow preferred_request_fields[] = {
        PROTOBUF_FIELD(1, TEXTS, PreferredRequest, available),
        PROTOBUF_FIELD(2, TEXTS, PreferredRequest, included),
        PROTOBUF_FIELD(3, NUMBER, PreferredRequest, size),
};
static const ProtobufMessage preferred_request_table =
        PROTOBUF_TABLE(PreferredRequest, preferred_request_fields);

typedef struct PreferredRequests {
        LIST_OF(PreferredRequest) containers;
} PreferredRequests;

static const ProtobufRow preferred_requests_fields[] = {
        PROTOBUF_FIELD(1, MESSAGES, PreferredRequests, containers,
                       .message = &preferred_request_table),
};
static const ProtobufMessage preferred_requests_table =
        PROTOBUF_TABLE(PreferredRequests, preferred_requests_fields);

/* The caller keeps the strings. */
static char **borrow(char *const *strv) {
        return (char **) (uintptr_t) strv;
}

int encode_preferred_request(char *const *available, char *const *included, int64_t size,
                             Buffer *ret) {
        PreferredRequest request = { borrow(available), borrow(included), size };
        const PreferredRequests requests = { { &request, 1 } };

        return protobuf_encode(&preferred_requests_table, &requests, ret, PLUGIN_FRAME_MAX);
}

int encode_allocate_request(char *const *ids, Buffer *ret) {
        IdList list = { borrow(ids) };
        const IdLists lists = { { &list, 1 } };

        return protobuf_encode(&id_lists_table, &lists, ret, PLUGIN_FRAME_MAX);
}

int encode_prepare_request(char *const *ids, Buffer *ret) {
        const IdList list = { borrow(ids) };

        return protobuf_encode(&id_list_table, &list, ret, PLUGIN_FRAME_MAX);
}

/* ---- answers ---- */

static int refuse_count(size_t n, const char *method, Error *reterr) {
        return error_setf(reterr, EBADMSG, "%s answered for %zu containers, not for one", method,
                          n);
}

int decode_preferred_answer(const char *data, size_t length, char ***ret, Error *reterr) {
        IdLists lists = { 0 };
        int r = protobuf_decode(&id_lists_table, data, length, &lists, reterr);

        if (r >= 0 && lists.containers.n > 1)
                r = refuse_count(lists.containers.n, "GetPreferredAllocation", reterr);
        if (r >= 0 && lists.containers.n == 1)
                *ret = TAKE_PTR(lists.containers.items[0].ids);
        protobuf_done(&id_lists_table, &lists);
        return r;
}

typedef struct AnsweredCdiDevice {
        char *name;
} AnsweredCdiDevice;

static const ProtobufRow cdi_device_fields[] = { PROTOBUF_FIELD(1, TEXT, AnsweredCdiDevice, name) };
static const ProtobufMessage cdi_device_table =
        PROTOBUF_TABLE(AnsweredCdiDevice, cdi_device_fields);

typedef struct ContainerAnswer {
        DeviceEdits edits;
        LIST_OF(AnsweredCdiDevice) cdi_devices;
} ContainerAnswer;

static const ProtobufRow container_answer_fields[] = {
        PROTOBUF_FIELD(1, MESSAGES, ContainerAnswer, edits.env, .message = &key_value_table),
        PROTOBUF_FIELD(2, MESSAGES, ContainerAnswer, edits.mounts, .message = &device_mount_table),
        PROTOBUF_FIELD(3, MESSAGES, ContainerAnswer, edits.files, .message = &device_file_table),
        PROTOBUF_FIELD(4, MESSAGES, ContainerAnswer, edits.annotations,
                       .message = &key_value_table),
        PROTOBUF_FIELD(5, MESSAGES, ContainerAnswer, cdi_devices, .message = &cdi_device_table),
};
static const ProtobufMessage container_answer_table =
        PROTOBUF_TABLE(ContainerAnswer, container_answer_fields);

typedef struct AllocateAnswer {
        LIST_OF(ContainerAnswer) containers;
} AllocateAnswer;

static const ProtobufRow allocate_answer_fields[] = {
        PROTOBUF_FIELD(1, MESSAGES, AllocateAnswer, containers, .message = &container_answer_table),
};
static const ProtobufMessage allocate_answer_table =
        PROTOBUF_TABLE(AllocateAnswer, allocate_answer_fields);

static int take_container_answer(ContainerAnswer *answer, DeviceEdits *ret, Error *reterr) {
        DeviceEdits *edits = &answer->edits;
        int r = device_edits_normalize(edits);

        for (size_t i = 0; i < answer->cdi_devices.n && r >= 0; i++)
                r = strv_append(&edits->cdi_devices, strna(answer->cdi_devices.items[i].name));
        if (r >= 0)
                r = device_edits_check(edits, reterr);
        if (r >= 0) {
                *ret = *edits;
                *edits = (DeviceEdits){ 0 };
        } else {
                strv_free(edits->cdi_devices);
                edits->cdi_devices = NULL;
        }
        return r;
}

int decode_allocate_answer(const char *data, size_t length, DeviceEdits *ret, Error *reterr) {
        AllocateAnswer answer = { 0 };
        int r = protobuf_decode(&allocate_answer_table, data, length, &answer, reterr);

        if (r >= 0 && answer.containers.n != 1)
                r = refuse_count(answer.containers.n, "Allocate", reterr);
        if (r >= 0)
                r = take_container_answer(&answer.containers.items[0], ret, reterr);
        protobuf_done(&allocate_answer_table, &answer);
        return r;
}

/* ---- pod resources ---- */

static const ProtobufRow get_pod_request_fields[] = {
        PROTOBUF_FIELD(1, TEXT, GetPodRequest, name),
        PROTOBUF_FIELD(2, TEXT, GetPodRequest, namespace),
};
const ProtobufMessage get_pod_request_table = PROTOBUF_TABLE(GetPodRequest, get_pod_request_fields);
