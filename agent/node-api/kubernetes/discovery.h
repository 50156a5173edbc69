/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The self-description of the Kubernetes API: groups, versions and resources. Pure. */

#include "agent/node-api/kubernetes/resource-path.h"

#include <jansson.h>

/* The document for a path, which the caller releases: APIVersions, APIGroupList, APIGroup or
 * APIResourceList; NULL: none. */
json_t *discovery_document(const char *path);

/* The document at "/", which the caller releases. */
json_t *discovery_paths(void);

/* Everything below /api or /apis in one APIGroupDiscoveryList; NULL for another path. */
json_t *discovery_aggregated(const char *path);
#define DISCOVERY_AGGREGATED_TYPE \
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
