/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The tables of fields as schemas of OpenAPI v3, for kubectl explain. Pure. */

/* The prefix of all schema names; the name of the API type follows. */
#define OPENAPI_PREFIX "io.mainstay."

/* An object of JSON that has the schema of each kind of a manifest, and of the types within them,
 * by name. The caller frees it; NULL: out of memory. */
char *openapi_schemas_to_json(void);
