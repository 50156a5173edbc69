/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bodies in Kubernetes' protobuf, which kubectl 1.36 sends if it has the types: the few messages
 * from which something is read are converted to JSON. Pure. */

#include <jansson.h>
#include <stdbool.h>

bool is_protobuf_body(const char *data, size_t length);

/* A new object; of an unknown kind it is empty. NULL: it is not valid, or no memory. */
json_t *protobuf_body_parse(const char *data, size_t length);

/* The metadata of the object in the body, regardless of its kind: {"metadata":{…}} with its name
 * and namespace. The caller releases it; NULL: it is none, or out of memory. */
json_t *protobuf_body_metadata(const char *data, size_t length);
