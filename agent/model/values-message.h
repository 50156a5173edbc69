/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Basic types as Protocol Buffers messages. */

#include "agent/model/values.h"
#include "common/protobuf.h"

/* The fields of KeyValue; a map of strings is a list of these messages. */
extern const ProtobufMessage key_value_table;
