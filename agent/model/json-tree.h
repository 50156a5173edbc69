/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The JSON of model/json.h as a jansson tree, for code that compares or changes it before it is
 * printed: the mirror pod and the pod status patch. */

#include "agent/model/status.h"

#include <jansson.h>

/* Like pod_to_json(), and like only its "status"; 'pod' may be NULL if 'status' has no containers.
 * The caller releases it; NULL: out of memory. */
json_t *pod_to_json_tree(const Pod *pod, const PodStatus *status);
json_t *pod_status_to_json_tree(const Pod *pod, const PodStatus *status);
