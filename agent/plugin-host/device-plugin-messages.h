/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The messages of the kubelet's device plugin API, v1beta1, and of its pod resources API, v1, that
 * this program receives or sends. */

#include "agent/plugins/plugin-protocol.h"

typedef struct RegisterRequest {
        char *version;
        char *endpoint;
        char *resource_name;
} RegisterRequest;

extern const ProtobufMessage register_request_table;

typedef struct DevicePluginOptions {
        bool pre_start_required;
        bool has_preferred_allocation;
} DevicePluginOptions;

extern const ProtobufMessage device_plugin_options_table;

/* Decodes a message of ListAndWatch. 0, or -errno with a message. */
int decode_device_list(const char *data, size_t length, DeviceList *ret, Error *reterr);

/* Requests for one container. 0 or -errno. */
int encode_preferred_request(char *const *available, char *const *included, int64_t size,
                             Buffer *ret);
int encode_allocate_request(char *const *ids, Buffer *ret);
int encode_prepare_request(char *const *ids, Buffer *ret);

/* Responses for one container. -EBADMSG for an invalid message, or if there is not exactly one
 * response. The results are written only on success. */
int decode_preferred_answer(const char *data, size_t length, char ***ret, Error *reterr);
int decode_allocate_answer(const char *data, size_t length, DeviceEdits *ret, Error *reterr);

/* The pod that a Get request names. */
typedef struct GetPodRequest {
        char *name, *namespace;
} GetPodRequest;

extern const ProtobufMessage get_pod_request_table;

/* The kubelet's rules: the name needs a domain that is not Kubernetes' own. */
bool is_extended_resource_name(const char *name);
