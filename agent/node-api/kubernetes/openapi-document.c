/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/kubernetes/openapi-document.h"

#include "agent/node-api/kubernetes/served-resources.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/text.h"

#include <stdio.h>

#define OPENAPI_V3    "/openapi/v3"
#define SCHEMA_PREFIX "io.mainstay." /* prefix of the agent's schemas */

static const char *group_root(const ServedResource *resource) {
        return resource->group[0] ? "apis" : "api";
}

json_t *openapi_index(void) {
        json_t *paths = json_object();

        for (size_t i = 0; i < n_served_resources; i++) {
                const ServedResource *resource = &served_resources[i];
                char version[API_VERSION_SIZE], name[API_VERSION_SIZE + 8];

                (void) snprintf(name, sizeof(name), "%s/%s", group_root(resource),
                                served_api_version(resource, version));
                (void) json_object_set_new(
                        paths, name,
                        json_pack("{s:s+}", "serverRelativeURL", OPENAPI_V3 "/", name));
        }
        return json_pack("{s:o}", "paths", paths);
}

int openapi_path_parse(const char *path, ResourcePath *ret) {
        size_t length = sizeof(OPENAPI_V3) - 1;

        return strncmp(path, OPENAPI_V3 "/", length + 1) == 0
                       ? resource_path_parse(path + length, ret)
                       : -EINVAL;
}

static json_t *describe_group_kind(const ServedResource *resource) {
        return json_pack("{s:s, s:s, s:s}", "group", resource->group, "version", resource->version,
                         "kind", resource->kind);
}

/* kubectl finds the kind by these, and validates only kinds that the server lists. */
static json_t *describe_operations(const ServedResource *resource) {
        return json_pack("{s:{s:o}, s:{s:o, s:[{s:s, s:s}, {s:s, s:s}]}}", "get",
                         "x-kubernetes-group-version-kind", describe_group_kind(resource), "patch",
                         "x-kubernetes-group-version-kind", describe_group_kind(resource),
                         "parameters", "name", "fieldValidation", "in", "query", "name", "dryRun",
                         "in", "query");
}

static void add_resource(const ServedResource *resource, json_t *paths, json_t *schemas) {
        cleanup_free char *path = NULL, *name = NULL;
        char version[API_VERSION_SIZE];
        json_t *schema;

        path = text_format(
                "/%s/%s%s/%s/{name}", group_root(resource), served_api_version(resource, version),
                resource->is_namespaced ? "/namespaces/{namespace}" : "", resource->plural);
        if (!path)
                return;
        name = text_format(SCHEMA_PREFIX "%s", resource->kind);
        if (!name)
                return;
        (void) json_object_set_new(paths, path, describe_operations(resource));
        schema = json_object_get(schemas, name);
        if (!schema) {
                schema = json_pack("{s:s, s:s}", "type", "object", "description",
                                   resource->agent_path ? "Made by this node, and in no manifest."
                                                        : "This node runs no object of this kind.");
                (void) json_object_set_new(schemas, name, schema);
        }
        (void) json_object_set_new(schema, "x-kubernetes-group-version-kind",
                                   json_pack("[o]", describe_group_kind(resource)));
}

json_t *openapi_document(const ResourcePath *path, json_t *schemas) {
        cleanup_json json_t *paths = json_object();

        for (size_t i = 0; i < n_served_resources; i++)
                if (streq(served_resources[i].group, path->group) &&
                    streq(served_resources[i].version, path->version))
                        add_resource(&served_resources[i], paths, schemas);
        if (json_object_size(paths) == 0)
                return NULL;
        return json_pack("{s:s, s:{s:s, s:s}, s:O, s:{s:O}}", "openapi", "3.0.0", "info", "title",
                         "Mainstay", "version", "1", "paths", paths, "components", "schemas",
                         schemas);
}
