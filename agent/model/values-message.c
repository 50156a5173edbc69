/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/values-message.h"

static const ProtobufRow key_value_fields[] = {
        PROTOBUF_FIELD(1, TEXT, KeyValue, key),
        PROTOBUF_FIELD(2, TEXT, KeyValue, value),
};
const ProtobufMessage key_value_table = PROTOBUF_TABLE(KeyValue, key_value_fields);
