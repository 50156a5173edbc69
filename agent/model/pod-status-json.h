/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The status of a pod as JSON, as a part of the output of model/pod-json.c. Other modules use
 * pod_status_to_json_tree() of model/json-tree.h. */

#include "agent/model/json-writer.h"
#include "agent/model/status.h"

/* 'pod' may be NULL if 'status' has no containers. */
json_t *json_writer_pod_status(JsonWriter *writer, const Pod *pod, const PodStatus *status);
