/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/csi/csi-messages.h"

#include "agent/model/values-message.h"

enum {
        REQUEST_MAX = 4 * 1024 * 1024
};

typedef struct MountCapability {
        char *fs_type;
        char **mount_flags;
        char *mount_group;
} MountCapability;

static const ProtobufRow mount_fields[] = {
        PROTOBUF_FIELD(1, TEXT, MountCapability, fs_type),
        PROTOBUF_FIELD(2, TEXTS, MountCapability, mount_flags),
        PROTOBUF_FIELD(3, TEXT, MountCapability, mount_group),
};
static const ProtobufMessage mount_table = PROTOBUF_TABLE(MountCapability, mount_fields);

typedef struct AccessMode {
        int64_t mode;
} AccessMode;

static const ProtobufRow access_mode_fields[] = { PROTOBUF_FIELD(1, NUMBER, AccessMode, mode) };
static const ProtobufMessage access_mode_table = PROTOBUF_TABLE(AccessMode, access_mode_fields);

/* This message is empty. */
typedef struct BlockCapability {
        char unused;
} BlockCapability;

static const ProtobufMessage block_table = { .size = sizeof(BlockCapability) };

/* 'block' or 'mount' has one item: a list, because drivers need the message even if it is empty. */
typedef struct VolumeCapability {
        LIST_OF(BlockCapability) block;
        LIST_OF(MountCapability) mount;
        AccessMode access_mode;
} VolumeCapability;

static const ProtobufRow capability_fields[] = {
        PROTOBUF_FIELD(1, MESSAGES, VolumeCapability, block, .message = &block_table),
        PROTOBUF_FIELD(2, MESSAGES, VolumeCapability, mount, .message = &mount_table),
        PROTOBUF_FIELD(3, MESSAGE, VolumeCapability, access_mode, .message = &access_mode_table),
};
static const ProtobufMessage capability_table = PROTOBUF_TABLE(VolumeCapability, capability_fields);

/* For NodeStageVolume and NodePublishVolume, whose fields are numbered differently. */
typedef struct StageMessage {
        char *volume_id;
        StringMap publish_context;
        char *staging_path;
        char *target_path;
        VolumeCapability capability;
        bool is_read_only;
        StringMap secrets;
        StringMap volume_context;
} StageMessage;

static const ProtobufRow stage_fields[] = {
        PROTOBUF_FIELD(1, TEXT, StageMessage, volume_id),
        PROTOBUF_FIELD(2, MESSAGES, StageMessage, publish_context, .message = &key_value_table),
        PROTOBUF_FIELD(3, TEXT, StageMessage, staging_path),
        PROTOBUF_FIELD(4, MESSAGE, StageMessage, capability, .message = &capability_table),
        PROTOBUF_FIELD(5, MESSAGES, StageMessage, secrets, .message = &key_value_table),
        PROTOBUF_FIELD(6, MESSAGES, StageMessage, volume_context, .message = &key_value_table),
};
static const ProtobufMessage stage_table = PROTOBUF_TABLE(StageMessage, stage_fields);

static const ProtobufRow publish_fields[] = {
        PROTOBUF_FIELD(1, TEXT, StageMessage, volume_id),
        PROTOBUF_FIELD(2, MESSAGES, StageMessage, publish_context, .message = &key_value_table),
        PROTOBUF_FIELD(3, TEXT, StageMessage, staging_path),
        PROTOBUF_FIELD(4, TEXT, StageMessage, target_path),
        PROTOBUF_FIELD(5, MESSAGE, StageMessage, capability, .message = &capability_table),
        PROTOBUF_FIELD(6, FLAG, StageMessage, is_read_only),
        PROTOBUF_FIELD(7, MESSAGES, StageMessage, secrets, .message = &key_value_table),
        PROTOBUF_FIELD(8, MESSAGES, StageMessage, volume_context, .message = &key_value_table),
};
static const ProtobufMessage publish_table = PROTOBUF_TABLE(StageMessage, publish_fields);

/* The encoder does not modify the message. */
static char *borrow_text(const char *text) {
        return (char *) (uintptr_t) text;
}

static StringMap borrow_map(const StringMap *map) {
        return map ? *map : (StringMap){ 0 };
}

static MountCapability borrow_mount(const char *fs_type, char *const *flags, const char *group) {
        return (MountCapability){ borrow_text(fs_type), (char **) (uintptr_t) flags,
                                  borrow_text(group) };
}

int encode_csi_stage_request(const CsiStageRequest *request, Buffer *ret) {
        MountCapability mount =
                borrow_mount(request->fs_type, request->mount_flags, request->mount_group);
        BlockCapability block = { 0 };
        const StageMessage message = {
                .volume_id = borrow_text(request->volume_id),
                .publish_context = borrow_map(request->publish_context),
                .staging_path = borrow_text(request->staging_path),
                .target_path = borrow_text(request->target_path),
                .capability = { { &block, request->is_block },
                                { &mount, !request->is_block },
                                { request->access_mode } },
                .is_read_only = request->is_read_only,
                .secrets = borrow_map(request->secrets),
                .volume_context = borrow_map(request->volume_context),
        };

        return protobuf_encode(request->target_path ? &publish_table : &stage_table, &message, ret,
                               REQUEST_MAX);
}

typedef struct CapacityRange {
        int64_t required_bytes;
} CapacityRange;

static const ProtobufRow capacity_fields[] = {
        PROTOBUF_FIELD(1, NUMBER, CapacityRange, required_bytes),
};
static const ProtobufMessage capacity_table = PROTOBUF_TABLE(CapacityRange, capacity_fields);

typedef struct ExpandMessage {
        char *volume_id;
        char *path;
        CapacityRange capacity;
        char *staging_path;
        VolumeCapability capability;
        StringMap secrets;
} ExpandMessage;

static const ProtobufRow expand_fields[] = {
        PROTOBUF_FIELD(1, TEXT, ExpandMessage, volume_id),
        PROTOBUF_FIELD(2, TEXT, ExpandMessage, path),
        PROTOBUF_FIELD(3, MESSAGE, ExpandMessage, capacity, .message = &capacity_table),
        PROTOBUF_FIELD(4, TEXT, ExpandMessage, staging_path),
        PROTOBUF_FIELD(5, MESSAGE, ExpandMessage, capability, .message = &capability_table),
        PROTOBUF_FIELD(6, MESSAGES, ExpandMessage, secrets, .message = &key_value_table),
};
static const ProtobufMessage expand_table = PROTOBUF_TABLE(ExpandMessage, expand_fields);

int encode_csi_expand_request(const CsiExpandRequest *request, Buffer *ret) {
        MountCapability mount = borrow_mount(request->fs_type, request->mount_flags, NULL);
        BlockCapability block = { 0 };
        const ExpandMessage message = {
                .volume_id = borrow_text(request->volume_id),
                .path = borrow_text(request->path),
                .capacity = { request->bytes },
                .staging_path = borrow_text(request->staging_path),
                .capability = { { &block, request->is_block },
                                { &mount, !request->is_block },
                                { request->access_mode } },
                .secrets = borrow_map(request->secrets),
        };

        return protobuf_encode(&expand_table, &message, ret, REQUEST_MAX);
}

typedef struct UnstageMessage {
        char *volume_id;
        char *path;
} UnstageMessage;

static const ProtobufRow unstage_fields[] = {
        PROTOBUF_FIELD(1, TEXT, UnstageMessage, volume_id),
        PROTOBUF_FIELD(2, TEXT, UnstageMessage, path),
};
static const ProtobufMessage unstage_table = PROTOBUF_TABLE(UnstageMessage, unstage_fields);

int encode_csi_unstage_request(const char *volume_id, const char *path, Buffer *ret) {
        const UnstageMessage message = { borrow_text(volume_id), borrow_text(path) };

        return protobuf_encode(&unstage_table, &message, ret, REQUEST_MAX);
}
