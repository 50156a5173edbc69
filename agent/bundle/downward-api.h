/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The downward API: what a variable or a file can say of the pod itself. Paths and resources were
 * checked by manifest/. */

#include "agent/bundle/bundle.h"

/* The value of "metadata.name", "metadata.labels['app']", "status.hostIP"…; "" for what is not
 * there. The caller frees it; NULL where memory ends. */
char *downward_api_field_value(const BundleConfig *config, const Pod *pod, const char *path);

/* A resource of a container in units of the divisor, rounded up; a limit that is not set is what
 * the node has. 'asking' is the container meant where the selector names none. */
char *downward_api_resource_value(const BundleConfig *config, const Pod *pod,
                                  const Container *asking, const ResourceFieldSelector *selector);
