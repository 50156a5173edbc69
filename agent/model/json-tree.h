/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The JSON of model/json.h as a jansson tree, for code that compares or changes it before it is
 * printed: the mirror pod and the pod status patch. */

#include "agent/model/status.h"

#include <jansson.h>

/* The same object as from pod_to_json(), and only the "status" of that object, for which 'pod' may
 * be NULL if 'status' has no containers. The caller releases the result; NULL: out of memory. */
json_t *pod_to_json_tree(const Pod *pod, const PodStatus *status);
json_t *pod_status_to_json_tree(const Pod *pod, const PodStatus *status);
