/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The tables of fields as OpenAPI v3 schemas, for kubectl explain. Pure. */

/* The prefix of all schema names; the name of the API type follows. */
#define OPENAPI_PREFIX "io.mainstay."

/* A JSON object that contains, by name, the schemas of all kinds of manifests and of the types in
 * them. The caller frees it; NULL: out of memory. */
char *openapi_schemas_to_json(void);
