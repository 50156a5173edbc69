/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/plugin-host/plugin-info.h"

#include "common/grpc.h"

typedef struct PluginInfo {
        char *type;
        char *name;
        char *endpoint;
        char **supported_versions;
} PluginInfo;

static const ProtobufRow plugin_info_fields[] = {
        PROTOBUF_FIELD(1, TEXT, PluginInfo, type),
        PROTOBUF_FIELD(2, TEXT, PluginInfo, name),
        PROTOBUF_FIELD(3, TEXT, PluginInfo, endpoint),
        PROTOBUF_FIELD(4, TEXTS, PluginInfo, supported_versions),
};
static const ProtobufMessage plugin_info_table = PROTOBUF_TABLE(PluginInfo, plugin_info_fields);

int decode_plugin_info(const char *data, size_t length, PluginMessage *ret) {
        PluginInfo info = { 0 };
        int r = protobuf_decode(&plugin_info_table, data, length, &info, NULL);

        if (r >= 0) {
                ret->type = TAKE_PTR(info.type);
                ret->name = TAKE_PTR(info.name);
                ret->endpoint = TAKE_PTR(info.endpoint);
                ret->ids = TAKE_PTR(info.supported_versions);
        }
        protobuf_done(&plugin_info_table, &info);
        return r;
}

typedef struct RegistrationStatus {
        bool plugin_registered;
        char *error;
} RegistrationStatus;

static const ProtobufRow registration_status_fields[] = {
        PROTOBUF_FIELD(1, FLAG, RegistrationStatus, plugin_registered),
        PROTOBUF_FIELD(2, TEXT, RegistrationStatus, error),
};
static const ProtobufMessage registration_status_table =
        PROTOBUF_TABLE(RegistrationStatus, registration_status_fields);

int encode_registration_status(const char *error, Buffer *ret) {
        const RegistrationStatus status = { !error, (char *) (uintptr_t) error };

        return protobuf_encode(&registration_status_table, &status, ret, GRPC_MESSAGE_MAX);
}
