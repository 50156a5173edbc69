/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/kubernetes/discovery.h"

#include "agent/node-api/kubernetes/served-resources.h"
#include "common/cleanup.h"
#include "common/json-text.h"

/* ---- words ---- */

static json_t *list_words(const char *const *words) {
        json_t *list = json_array();

        for (; words && *words; words++)
                (void) json_array_append_new(list, json_string(*words));
        return list;
}

/* The table is grouped by API group. */
static bool is_first_of_group(size_t i) {
        return i == 0 || !streq(served_resources[i].group, served_resources[i - 1].group);
}

/* ---- one document for each group ---- */

static json_t *describe_group(const ServedResource *resource) {
        char version[API_VERSION_SIZE];

        served_api_version(resource, version);
        return json_pack("{s:s, s:[{s:s, s:s}], s:{s:s, s:s}}", "name", resource->group, "versions",
                         "groupVersion", version, "version", resource->version, "preferredVersion",
                         "groupVersion", version, "version", resource->version);
}

static json_t *list_groups(void) {
        json_t *groups = json_array();

        for (size_t i = 0; i < n_served_resources; i++)
                if (is_first_of_group(i) && served_resources[i].group[0])
                        (void) json_array_append_new(groups, describe_group(&served_resources[i]));
        return json_pack("{s:s, s:s, s:o}", "kind", "APIGroupList", "apiVersion", "v1", "groups",
                         groups);
}

static json_t *describe_one_group(const char *name) {
        for (size_t i = 0; i < n_served_resources; i++) {
                json_t *group;

                if (!name[0] || !streq(served_resources[i].group, name))
                        continue;
                group = describe_group(&served_resources[i]);
                (void) json_object_set_new(group, "kind", json_string("APIGroup"));
                (void) json_object_set_new(group, "apiVersion", json_string("v1"));
                return group;
        }
        return NULL;
}

/* The kind that a subresource accepts, if it differs from the resource's: kubectl drain looks for
 * it. */
typedef struct SubresourceKind {
        const char *group, *version, *kind;
} SubresourceKind;

static SubresourceKind find_subresource_kind(const ServedResource *resource, const char *name) {
        if (streq(name, "eviction"))
                return (SubresourceKind){ "policy", "v1", "Eviction" };
        return (SubresourceKind){ resource->group, resource->version, resource->kind };
}

static void list_subresources(const ServedResource *resource, json_t *list) {
        for (const char *const *name = resource->subresources; name && *name; name++) {
                SubresourceKind kind = find_subresource_kind(resource, *name);

                (void) json_array_append_new(
                        list, json_pack("{s:s++, s:s, s:b, s:s, s:s, s:s, s:o}", "name",
                                        resource->plural, "/", *name, "singularName", "",
                                        "namespaced", resource->is_namespaced, "group", kind.group,
                                        "version", kind.version, "kind", kind.kind, "verbs",
                                        list_words(served_verbs(resource, *name))));
        }
}

static json_t *list_resources(const ResourcePath *path) {
        json_t *list = json_array();
        char version[API_VERSION_SIZE] = "";

        for (size_t i = 0; i < n_served_resources; i++) {
                const ServedResource *resource = &served_resources[i];

                if (!streq(resource->group, path->group) ||
                    !streq(resource->version, path->version))
                        continue;
                served_api_version(resource, version);
                (void) json_array_append_new(
                        list,
                        json_pack("{s:s, s:s, s:b, s:s, s:o, s:o, s:o}", "name", resource->plural,
                                  "singularName", resource->singular, "namespaced",
                                  resource->is_namespaced, "kind", resource->kind, "verbs",
                                  list_words(served_verbs(resource, NULL)), "shortNames",
                                  list_words(resource->short_names), "categories",
                                  list_words(resource->categories)));
                list_subresources(resource, list);
        }
        if (version[0])
                return json_pack("{s:s, s:s, s:s, s:o}", "kind", "APIResourceList", "apiVersion",
                                 "v1", "groupVersion", version, "resources", list);
        json_decref(list);
        return NULL;
}

static bool is_path(const char *path, const char *expected) {
        size_t length = strlen(expected);

        return strncmp(path, expected, length) == 0 &&
               streq(path[length] == '/' ? path + length + 1 : path + length, "");
}

json_t *discovery_document(const char *path) {
        cleanup_with(resource_path_done) ResourcePath parts = { 0 };

        if (is_path(path, "/api"))
                return json_pack("{s:s, s:[s], s:[]}", "kind", "APIVersions", "versions", "v1",
                                 "serverAddressByClientCIDRs");
        if (is_path(path, "/apis"))
                return list_groups();
        if (resource_path_parse(path, &parts) >= 0)
                return parts.resource ? NULL : list_resources(&parts);
        return strncmp(path, "/apis/", 6) == 0 ? describe_one_group(path + 6) : NULL;
}

json_t *discovery_paths(void) {
        static const char *const paths[] = { "/api",    "/api/v1",  "/apis",       "/healthz",
                                             "/livez",  "/metrics", "/openapi/v2", "/openapi/v3",
                                             "/readyz", "/version", NULL };
        json_t *list = list_words(paths);

        for (size_t i = 0; i < n_served_resources; i++) {
                char version[API_VERSION_SIZE];

                if (!is_first_of_group(i) || !served_resources[i].group[0])
                        continue;
                (void) json_array_append_new(list,
                                             json_sprintf("/apis/%s", served_resources[i].group));
                (void) json_array_append_new(
                        list, json_sprintf("/apis/%s",
                                           served_api_version(&served_resources[i], version)));
        }
        return json_pack("{s:o}", "paths", list);
}

/* ---- all groups in one document ---- */

static json_t *describe_kind(SubresourceKind kind) {
        return json_pack("{s:s, s:s, s:s}", "group", kind.group, "version", kind.version, "kind",
                         kind.kind);
}

static json_t *aggregate_subresources(const ServedResource *resource) {
        json_t *list = json_array();

        for (const char *const *name = resource->subresources; name && *name; name++)
                (void) json_array_append_new(
                        list, json_pack("{s:s, s:o, s:o}", "subresource", *name, "responseKind",
                                        describe_kind(find_subresource_kind(resource, *name)),
                                        "verbs", list_words(served_verbs(resource, *name))));
        return list;
}

static json_t *aggregate_resource(const ServedResource *resource) {
        SubresourceKind kind = { resource->group, resource->version, resource->kind };

        return json_pack("{s:s, s:o, s:s, s:s, s:o, s:o, s:o, s:o}", "resource", resource->plural,
                         "responseKind", describe_kind(kind), "scope",
                         resource->is_namespaced ? "Namespaced" : "Cluster", "singularResource",
                         resource->singular, "verbs", list_words(served_verbs(resource, NULL)),
                         "shortNames", list_words(resource->short_names), "categories",
                         list_words(resource->categories), "subresources",
                         aggregate_subresources(resource));
}

static json_t *aggregate_group(const ServedResource *first) {
        json_t *resources = json_array();

        for (size_t i = 0; i < n_served_resources; i++)
                if (streq(served_resources[i].group, first->group))
                        (void) json_array_append_new(resources,
                                                     aggregate_resource(&served_resources[i]));
        return json_pack("{s:{s:s}, s:[{s:s, s:s, s:o}]}", "metadata", "name", first->group,
                         "versions", "version", first->version, "freshness", "Current", "resources",
                         resources);
}

json_t *discovery_aggregated(const char *path) {
        bool is_core = is_path(path, "/api");
        json_t *items;

        if (!is_core && !is_path(path, "/apis"))
                return NULL;
        items = json_array();
        for (size_t i = 0; i < n_served_resources; i++)
                if (is_first_of_group(i) && (served_resources[i].group[0] == '\0') == is_core)
                        (void) json_array_append_new(items, aggregate_group(&served_resources[i]));
        return json_pack("{s:s, s:s, s:{}, s:o}", "kind", "APIGroupDiscoveryList", "apiVersion",
                         "apidiscovery.k8s.io/v2", "metadata", "items", items);
}
