/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bodies in Kubernetes' protobuf, which kubectl 1.36 sends where it has the types: those few
 * messages that something is read from become what they are in JSON. Pure. */

#include <jansson.h>
#include <stdbool.h>

bool is_protobuf_body(const char *data, size_t length);

/* A new object; of an unknown kind it is empty. NULL: it is not valid, or no memory. */
json_t *protobuf_body_parse(const char *data, size_t length);

/* The metadata of the object in the body, whatever its kind: {"metadata":{…}} with its name and
 * namespace. The caller releases it; NULL: it is none, or out of memory. */
json_t *protobuf_body_metadata(const char *data, size_t length);
