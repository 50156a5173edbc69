/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The objects that a pod refers to: ConfigMaps and Secrets of its variables, volumes and image
 * pulls, and its RuntimeClass. */

#include "agent/model/object.h"

typedef int (*visit_reference_t)(const ObjectKey *key, void *userdata);

/* Calls 'visit' for each reference, possibly more than once; the key has the pod's source. Stops at
 * the first result < 0 and returns it. */
int pod_foreach_reference(const Pod *pod, visit_reference_t visit, void *userdata);
