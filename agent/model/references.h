/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which objects a pod names: ConfigMaps and Secrets of its variables, volumes and pulls, and its
 * RuntimeClass. */

#include "agent/model/object.h"

typedef int (*reference_t)(ObjectKind kind, const char *namespace, const char *name,
                           void *userdata);

/* Tells of each reference, some more than once. Ends at the first < 0, and gives it. */
int pod_each_reference(const Pod *pod, reference_t each, void *userdata);
