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

typedef struct VolumeCondition {
        bool is_abnormal;
} VolumeCondition;

typedef struct VolumeStats {
        LIST_OF(CsiUsage) usages;
        VolumeCondition condition;
} VolumeStats;

static const ProtobufRow volume_condition_fields[] = {
        PROTOBUF_FIELD(1, FLAG, VolumeCondition, is_abnormal),
};
static const ProtobufMessage volume_condition_table =
        PROTOBUF_TABLE(VolumeCondition, volume_condition_fields);

static const ProtobufRow volume_stats_fields[] = {
        PROTOBUF_FIELD(1, MESSAGES, VolumeStats, usages, .message = &csi_usage_table),
        PROTOBUF_FIELD(2, MESSAGE, VolumeStats, condition, .message = &volume_condition_table),
};
static const ProtobufMessage volume_stats_table = PROTOBUF_TABLE(VolumeStats, volume_stats_fields);

int decode_csi_volume_stats(const char *data, size_t length, CsiNodeAnswer *ret) {
        VolumeStats message = { 0 };
        int r = protobuf_decode(&volume_stats_table, data, length, &message, NULL);

        for (size_t i = 0; i < message.usages.n && r >= 0; i++) {
                CsiUsage *usage = ARRAY_APPEND(ret->usages.items, ret->usages.n);

                if (usage)
                        *usage = message.usages.items[i];
                else
                        r = -ENOMEM;
        }
        ret->is_abnormal = message.condition.is_abnormal;
        protobuf_done(&volume_stats_table, &message);
        return r;
}
