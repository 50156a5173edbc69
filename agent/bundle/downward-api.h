/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The downward API: fieldRef and resourceFieldRef, for variables and for files. Paths in manifests
 * have been validated by manifest/. */

#include "agent/bundle/bundle-settings.h"

/* The value of "metadata.name", "metadata.labels['app']", "status.hostIP"…; "" if it is unset.
 * The caller frees it. 0, -ENOMEM, or -EINVAL for a path that only a newer API server supports. */
int downward_api_field_value(const BundleConfig *config, const Pod *pod, const char *path,
                             char **ret, Error *reterr);

/* A resource of a container in units of the divisor, rounded up. For an unset limit, the capacity
 * of the node. 'asking' is used if the selector names no container; NULL for a volume. 0, -ENOMEM,
 * or -EINVAL for a container that does not exist or a resource that no node has; an API server
 * accepts both. */
int downward_api_resource_value(const BundleConfig *config, const Pod *pod, const Container *asking,
                                const ResourceFieldSelector *selector, char **ret, Error *reterr);
