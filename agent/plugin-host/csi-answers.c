/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/plugin-host/csi-answers.h"

#include "agent/model/values-message.h"
#include "agent/plugins/plugin-protocol.h"
#include "common/array.h"

#include <errno.h>

typedef struct Topology {
        StringMap segments;
} Topology;

typedef struct CsiNodeInfo {
        char *node_id;
        int64_t max_volumes;
        Topology topology;
} CsiNodeInfo;

static const ProtobufRow topology_fields[] = {
        PROTOBUF_FIELD(1, MESSAGES, Topology, segments, .message = &key_value_table),
};
static const ProtobufMessage topology_table = PROTOBUF_TABLE(Topology, topology_fields);

static const ProtobufRow csi_node_info_fields[] = {
        PROTOBUF_FIELD(1, TEXT, CsiNodeInfo, node_id),
        PROTOBUF_FIELD(2, NUMBER, CsiNodeInfo, max_volumes),
        PROTOBUF_FIELD(3, MESSAGE, CsiNodeInfo, topology, .message = &topology_table),
};
static const ProtobufMessage csi_node_info_table =
        PROTOBUF_TABLE(CsiNodeInfo, csi_node_info_fields);

int decode_csi_node_info(const char *data, size_t length, CsiNodeAnswer *ret) {
        CsiNodeInfo info = { 0 };
        int r = protobuf_decode(&csi_node_info_table, data, length, &info, NULL);

        if (r >= 0) {
                ret->node_id = TAKE_PTR(info.node_id);
                ret->max_volumes = info.max_volumes;
                ret->segments = info.topology.segments;
                info.topology.segments = (StringMap){ 0 };
        }
        protobuf_done(&csi_node_info_table, &info);
        return r;
}

typedef struct RpcCapability {
        int64_t type;
} RpcCapability;

typedef struct NodeCapability {
        RpcCapability rpc;
} NodeCapability;

typedef struct NodeCapabilities {
        LIST_OF(NodeCapability) items;
} NodeCapabilities;

static const ProtobufRow rpc_capability_fields[] = {
        PROTOBUF_FIELD(1, NUMBER, RpcCapability, type),
};
static const ProtobufMessage rpc_capability_table =
        PROTOBUF_TABLE(RpcCapability, rpc_capability_fields);

static const ProtobufRow node_capability_fields[] = {
        PROTOBUF_FIELD(1, MESSAGE, NodeCapability, rpc, .message = &rpc_capability_table),
};
static const ProtobufMessage node_capability_table =
        PROTOBUF_TABLE(NodeCapability, node_capability_fields);

static const ProtobufRow node_capabilities_fields[] = {
        PROTOBUF_FIELD(1, MESSAGES, NodeCapabilities, items, .message = &node_capability_table),
};
static const ProtobufMessage node_capabilities_table =
        PROTOBUF_TABLE(NodeCapabilities, node_capabilities_fields);

int decode_csi_capabilities(const char *data, size_t length, CsiNodeAnswer *ret) {
        NodeCapabilities message = { 0 };
        int r = protobuf_decode(&node_capabilities_table, data, length, &message, NULL);

        for (size_t i = 0; i < message.items.n && r >= 0; i++) {
                int64_t *type = ARRAY_APPEND(ret->capabilities.items, ret->capabilities.n);

                if (type)
                        *type = message.items.items[i].rpc.type;
                else
                        r = -ENOMEM;
        }
        protobuf_done(&node_capabilities_table, &message);
        return r;
}
