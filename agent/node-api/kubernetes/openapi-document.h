/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The OpenAPI documents that kubectl explain and its validation request. Pure. */

#include "agent/node-api/kubernetes/resource-path.h"

#include <jansson.h>

/* /openapi/v3: the documents that there are, one for each group and version. */
json_t *openapi_index(void);

/* The path of such a document. 0; -EINVAL: the path is another one; -ENOMEM. The caller ends *ret.
 */
int openapi_path_parse(const char *path, ResourcePath *ret);

/* The document of a group and version, of the schemas that the agent has (/schemas). NULL: there is
 * none, or no memory. */
json_t *openapi_document(const ResourcePath *path, json_t *schemas);
