/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which objects a pod names: ConfigMaps and Secrets of its variables, volumes and pulls, and its
 * RuntimeClass. */

#include "agent/model/object.h"

typedef int (*visit_reference_t)(ObjectKind kind, const char *namespace, const char *name,
                                 void *userdata);

/* Tells of each reference, some more than once. Ends at the first < 0, and gives it. */
int pod_foreach_reference(const Pod *pod, visit_reference_t visit, void *userdata);
