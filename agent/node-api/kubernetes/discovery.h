/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The self-description of the Kubernetes API: groups, versions and resources. Pure. */

#include "agent/node-api/kubernetes/resource-path.h"

#include <jansson.h>

/* The document at a path, which the caller releases: APIVersions, APIGroupList, APIGroup or
 * APIResourceList; NULL: nothing is there. */
json_t *discovery_document(const char *path);

/* The document at "/", which the caller releases. */
json_t *discovery_paths(void);

/* All of /api or /apis in one APIGroupDiscoveryList; NULL for another path. */
json_t *discovery_aggregated(const char *path);
#define DISCOVERY_AGGREGATED_TYPE \
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
