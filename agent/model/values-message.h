/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Basic types as Protocol Buffers. */

#include "agent/model/values.h"
#include "common/protobuf.h"

/* Of KeyValue: a map of strings is a list of them. */
extern const ProtobufMessage key_value_table;
