/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The OpenAPI documents that kubectl requests for explain and for validation. Pure. */

#include "agent/node-api/kubernetes/resource-path.h"

#include <jansson.h>

/* /openapi/v3: the available documents, one per group and version. */
json_t *openapi_index(void);

/* Parses the path of such a document. 0; -EINVAL: another path; -ENOMEM. The caller releases *ret.
 */
int openapi_path_parse(const char *path, ResourcePath *ret);

/* The document for a group and version, from the agent's schemas (/schemas). NULL: there is none,
 * or out of memory. */
json_t *openapi_document(const ResourcePath *path, json_t *schemas);
