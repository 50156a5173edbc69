/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bodies in Kubernetes' protobuf encoding, which kubectl 1.36 sends for built-in types: the few
 * messages that the server needs are converted to JSON. Pure. */

#include <jansson.h>
#include <stdbool.h>

bool is_protobuf_body(const char *data, size_t length);

/* A new object; empty for an unknown kind. NULL: invalid, or out of memory. */
json_t *protobuf_body_parse(const char *data, size_t length);

/* The metadata of the object in the body, regardless of its kind: {"metadata":{…}} with its name
 * and namespace. The caller releases it; NULL: not an object, or out of memory. */
json_t *protobuf_body_metadata(const char *data, size_t length);
