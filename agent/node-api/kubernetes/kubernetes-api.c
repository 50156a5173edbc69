/* SPDX-License-Identifier: Apache-2.0 */

/* The Kubernetes API of a node that has joined no API server: discovery, the agent's objects, and
 * the pods' subresources, which correspond to paths of the kubelet. Files are the only source of
 * objects; api-write.c has the permitted writes. */

#include "agent/node-api/http/request-url.h"
#include "agent/node-api/kubernetes/discovery.h"
#include "agent/node-api/kubernetes/metrics-objects.h"
#include "agent/node-api/kubernetes/object-list.h"
#include "agent/node-api/kubernetes/openapi-document.h"
#include "agent/node-api/process/node-api-private.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"
#include "common/text.h"

static ApiStepResult reply_json(ApiRequest *request, const char *type, json_t *json_consume) {
        cleanup_json json_t *json = json_consume;
        cleanup_free char *text = json ? json_to_text(json, JSON_COMPACT) : NULL;

        return text ? api_reply_typed(request, MHD_HTTP_OK, type, text) : API_STEP_ABORT;
}

/* kubectl create sends objects even of kinds that are not in discovery. */
static ApiStepResult reply_no_resource(ApiRequest *request) {
        return api_reply_text(request, MHD_HTTP_NOT_FOUND,
                              streq(request->method, "GET")
                                      ? "the server could not find the requested resource"
                                      : "the server could not find the requested resource: this "
                                        "node is without an API server, and runs Pods and "
                                        "DaemonSets of files, with their ConfigMaps, Secrets, "
                                        "PriorityClasses and RuntimeClasses");
}

/* A flag of the API: "true" and "1" are true. */
bool api_is_flag_true(const ApiRequest *request, const char *name) {
        const char *value = api_parameter(request->http, name);

        return value && (streq(value, "true") || streq(value, "1"));
}

/* ---- self-description of the server ---- */

static ApiStepResult reply_version(ApiRequest *request) {
        const char *version = strna(request->server->settings.version);
        unsigned major = 0, minor = 0;
        char numbers[2][16];

        (void) sscanf(version, "v%u.%u", &major, &minor);
        (void) snprintf(numbers[0], sizeof(numbers[0]), "%u", major);
        (void) snprintf(numbers[1], sizeof(numbers[1]), "%u", minor);
        return reply_json(request, "application/json",
                          json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "major",
                                    numbers[0], "minor", numbers[1], "gitVersion", version,
                                    "gitCommit", "", "gitTreeState", "", "buildDate", "",
                                    "goVersion", "", "compiler", "", "platform", ""));
}

static ApiStepResult reply_discovery(ApiRequest *request) {
        const char *accept = api_header(request->http, MHD_HTTP_HEADER_ACCEPT);
        json_t *document = accepts_form(accept, "as=APIGroupDiscoveryList", "v=v2")
                                   ? discovery_aggregated(request->path)
                                   : NULL;

        if (document)
                return reply_json(request, DISCOVERY_AGGREGATED_TYPE, document);
        document = discovery_document(request->path);
        return document ? reply_json(request, "application/json", document)
                        : reply_no_resource(request);
}

/* ---- objects ---- */

static ApiStepResult ask_agent_for_list(ApiRequest *request, const char *path) {
        return api_request_ask_agent(request,
                                     &(AgentRequestSpec){ .kind = AGENT_COLLECT,
                                                          .path = path,
                                                          .body_max = API_LIST_BYTES_MAX });
}

static bool has_agent_failed(const ApiRequest *request) {
        return request->reply_error < 0 || request->reply_status != MHD_HTTP_OK;
}

/* Metrics are selected by the labels of the objects that they describe. */
static ApiStepResult fetch_labels(ApiRequest *request, const ServedResource *resource) {
        cleanup_json json_t *reply = NULL, *objects = NULL;

        if (!request->has_reply)
                return ask_agent_for_list(request, resource->labels_path);
        if (has_agent_failed(request))
                return api_reply_agent_error(request);
        reply = json_loads(request->reply_body, 0, NULL);
        objects = json_incref(json_object_get(reply, "items"));
        if (!objects)
                objects = json_pack("[O*]", reply);
        request->labels = list_labels(objects);
        api_request_clear_reply(request);
        return request->labels ? API_STEP_NEXT : API_STEP_ABORT;
}

/* The resource's objects, once the agent has replied; before that, and after an error, NULL with
 * the result of the step. */
static json_t *fetch_served_objects(ApiRequest *request, const ServedResource *resource,
                                    ApiStepResult *ret) {
        json_t *objects = NULL;
        ObjectVersions *versions;

        *ret = API_STEP_ABORT;
        if (!resource->agent_path)
                return json_array();
        if (resource->labels_path && !request->labels) {
                *ret = fetch_labels(request, resource);
                if (*ret != API_STEP_NEXT)
                        return NULL;
        }
        if (!request->has_reply) {
                *ret = ask_agent_for_list(request, resource->agent_path);
                return NULL;
        }
        if (has_agent_failed(request))
                *ret = api_reply_agent_error(request);
        else
                (void) served_objects_parse(resource, request->reply_body, &objects);
        set_labels(objects, request->labels);
        set_creation_times(objects, request->server->settings.node_created);
        versions = objects ? api_object_versions(request->server, resource) : NULL;
        if (versions)
                object_versions_observe_all(versions, objects);
        return objects;
}

static json_t *find_object(const json_t *objects, const ResourcePath *path) {
        ListQuery query = { .namespace = path->namespace, .name = path->name };
        size_t i;
        json_t *object;

        json_array_foreach(objects, i, object)
                if (list_query_matches(&query, object))
                        return object;
        return NULL;
}

/* A static pod's name is its manifest's name, followed by the node's. */
static json_t *find_manifest_pod(const ApiRequest *request, const json_t *objects,
                                 const ServedResource *resource, const ResourcePath *path) {
        cleanup_free char *name = NULL;

        if (streq(resource->kind, "Pod"))
                name = text_format("%s-%s", path->name, strna(request->server->settings.node_name));
        if (!name)
                return NULL;
        return find_object(objects, &(ResourcePath){ .namespace = path->namespace, .name = name });
}

ApiStepResult api_reply_no_object(ApiRequest *request, const ServedResource *resource,
                                  const char *name) {
        const char *pod = json_text(request->manifest_pod, "metadata", "name");

        return api_replyf(request, MHD_HTTP_NOT_FOUND, "%s%s%s \"%s\" not found%s%s",
                          resource->plural, resource->group[0] ? "." : "", resource->group, name,
                          pod ? "; the pod of this manifest is " : "", strna(pod));
}

int api_read_selectors(const ApiRequest *request, const ServedResource *resource, ListQuery *query,
                       Error *reterr) {
        int r = label_terms_parse(api_parameter(request->http, "labelSelector"), &query->labels,
                                  reterr);

        return r < 0 ? r
                     : field_terms_parse(api_parameter(request->http, "fieldSelector"),
                                         resource->fields, &query->fields, reterr);
}

static int read_list_query(const ApiRequest *request, const ServedResource *resource,
                           const ResourcePath *path, ListQuery *ret, Error *reterr) {
        const char *limit = api_parameter(request->http, "limit");
        int r = api_read_selectors(request, resource, ret, reterr);

        if (r < 0)
                return r;
        ret->namespace = path->namespace;
        ret->after = api_parameter(request->http, "continue");
        ret->limit = limit && limit[0] != '-' ? strtoul(limit, NULL, 10) : 0;
        return 0;
}

static ApiStepResult handle_list(ApiRequest *request, const ServedResource *resource,
                                 const ResourcePath *path, const ObjectForm *form) {
        cleanup_with(list_query_done) ListQuery query = { 0 };
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *objects = NULL;
        const ObjectVersions *versions = api_object_versions(request->server, resource);
        ApiStepResult result;
        int r = read_list_query(request, resource, path, &query, &error);

        if (r < 0)
                return api_reply_text(request, MHD_HTTP_BAD_REQUEST, error_message(&error, r));
        objects = fetch_served_objects(request, resource, &result);
        if (!objects)
                return result;
        return reply_json(request, "application/json",
                          object_list_format(resource, objects, &query, form,
                                             versions ? object_versions_latest(versions) : 0,
                                             now_realtime_usec()));
}

json_t *api_find_object(ApiRequest *request, const ServedResource *resource,
                        const ResourcePath *path, ApiStepResult *ret) {
        cleanup_json json_t *objects = NULL;

        *ret = API_STEP_NEXT;
        if (request->has_looked)
                return request->object;
        objects = fetch_served_objects(request, resource, ret);
        if (!objects)
                return NULL;
        request->object = json_incref(find_object(objects, path));
        if (!request->object)
                request->manifest_pod =
                        json_incref(find_manifest_pod(request, objects, resource, path));
        request->has_looked = true;
        *ret = API_STEP_NEXT;
        api_request_clear_reply(request);
        return request->object;
}

json_t *api_require_object(ApiRequest *request, const ServedResource *resource,
                           const ResourcePath *path, ApiStepResult *ret) {
        json_t *object = api_find_object(request, resource, path, ret);

        if (!object && *ret == API_STEP_NEXT)
                *ret = api_reply_no_object(request, resource, path->name);
        return object;
}

static ObjectForm negotiate_form(const ApiRequest *request) {
        return object_form_negotiate(api_header(request->http, MHD_HTTP_HEADER_ACCEPT),
                                     api_parameter(request->http, "includeObject"));
}

ApiStepResult api_handle_get(ApiRequest *request, const ServedResource *resource,
                             const ResourcePath *path) {
        const ObjectForm form = negotiate_form(request);
        ApiStepResult result;
        json_t *object = api_require_object(request, resource, path, &result);

        return object ? reply_json(request, "application/json",
                                   object_format(resource, object, &form, now_realtime_usec()))
                      : result;
}

static ApiStepResult handle_read(ApiRequest *request, const ServedResource *resource,
                                 const ResourcePath *path) {
        const ObjectForm form = negotiate_form(request);

        if (api_is_flag_true(request, "watch"))
                return api_handle_watch(request, resource, path, &form);
        return path->name ? api_handle_get(request, resource, path)
                          : handle_list(request, resource, path, &form);
}

/* ---- subresources of pods ---- */

static void write_container_names(const json_t *pod, FILE *out) {
        size_t i;
        const json_t *container;

        json_array_foreach(json_at(pod, "spec", "containers"), i, container)
                fprintf(out, "%s%s", i > 0 ? " " : "", strna(json_text(container, "name")));
}

static ApiStepResult reply_which_container(ApiRequest *request, const json_t *pod,
                                           const char *name) {
        cleanup_free char *names = NULL;
        size_t size;
        FILE *out = open_memstream(&names, &size);

        if (!out)
                return API_STEP_ABORT;
        write_container_names(pod, out);
        if (fclose(out) != 0)
                return API_STEP_ABORT;
        return api_replyf(request, MHD_HTTP_BAD_REQUEST,
                          "a container name must be specified for pod %s, choose one of: [%s]",
                          name, names);
}

/* Without a container in the query, the pod's only container is chosen; its name is requested from
 * the agent. */
static ApiStepResult choose_requested_container(ApiRequest *request, const ServedResource *pods,
                                                const ResourcePath *path) {
        const char *named = api_parameter(request->http, "container");
        ApiStepResult result;
        const json_t *pod, *containers;

        if (request->container)
                return API_STEP_NEXT;
        if (named && *named) {
                request->container = strdup(named);
                return request->container ? API_STEP_NEXT : API_STEP_ABORT;
        }
        pod = api_require_object(request, pods, path, &result);
        if (!pod)
                return result;
        containers = json_at(pod, "spec", "containers");
        if (json_array_size(containers) != 1)
                return reply_which_container(request, pod, path->name);
        request->container = strdup(strna(json_text(json_array_get(containers, 0), "name")));
        return request->container ? API_STEP_NEXT : API_STEP_ABORT;
}

static const struct {
        const char *name;
        ApiStepResult (*handler)(ApiRequest *request, const char *rest);
        bool has_container;
} pod_subresources[] = {
        { "log", api_handle_container_logs, true },
        { "exec", api_handle_exec, true },
        { "attach", api_handle_attach, true },
        { "portforward", api_handle_port_forward, false },
};

/* The corresponding path of the kubelet: "<namespace>/<pod>[/<container>]". */
static ApiStepResult run_pod_subresource(ApiRequest *request, size_t i, const ServedResource *pods,
                                         const ResourcePath *path) {
        bool has_container = pod_subresources[i].has_container;
        ApiStepResult result =
                has_container ? choose_requested_container(request, pods, path) : API_STEP_NEXT;
        cleanup_free char *rest = NULL;

        if (result != API_STEP_NEXT)
                return result;
        rest = text_format("%s/%s%s%s", path->namespace, path->name, has_container ? "/" : "",
                           has_container ? request->container : "");
        if (!rest)
                return API_STEP_ABORT;
        return pod_subresources[i].handler(request, rest);
}

/* Reading one of these returns the object itself. */
static bool is_part_of_object(const char *subresource) {
        return streq(subresource, "status") || streq(subresource, "resize") ||
               streq(subresource, "ephemeralcontainers");
}

static ApiStepResult handle_subresource(ApiRequest *request, const ServedResource *resource,
                                        const ResourcePath *path) {
        bool is_session = streq(request->method, "GET") || streq(request->method, "POST");

        if (streq(request->method, "GET") && is_part_of_object(path->subresource))
                return api_handle_get(request, resource, path);
        if (streq(path->subresource, "scale") && streq(resource->plural, "daemonsets"))
                return api_refuse_any_write(request, resource, path);
        if (!streq(resource->plural, "pods") || resource->group[0] || !path->namespace)
                return is_session && streq(request->method, "GET")
                               ? reply_no_resource(request)
                               : api_refuse_any_write(request, resource, path);
        for (size_t i = 0; i < N_ELEMENTS(pod_subresources); i++)
                if (streq(path->subresource, pod_subresources[i].name) && is_session)
                        return run_pod_subresource(request, i, resource, path);
        return streq(request->method, "GET") ? reply_no_resource(request)
                                             : api_handle_pod_write(request, resource, path);
}

/* ---- OpenAPI ---- */

/* Without the server's documents, kubectl does not validate what it sends. It decodes them
 * regardless of their type, and an empty document is an empty protobuf message. */
static ApiStepResult reply_openapi_v2(ApiRequest *request) {
        const char *accept = strna(api_header(request->http, MHD_HTTP_HEADER_ACCEPT));

        if (strstr(accept, "proto-openapi"))
                return api_reply_typed(request, MHD_HTTP_OK,
                                       "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
                                       "");
        return reply_json(request, "application/json",
                          json_pack("{s:s, s:{s:s, s:s}, s:{}, s:{}}", "swagger", "2.0", "info",
                                    "title", "Mainstay", "version",
                                    strna(request->server->settings.version), "paths",
                                    "definitions"));
}

/* The resources of a group and version. */
static ApiStepResult reply_openapi_v3(ApiRequest *request, const ResourcePath *path) {
        cleanup_json json_t *schemas = NULL, *document = NULL;

        if (path->resource)
                return reply_no_resource(request);
        if (!request->has_reply)
                return ask_agent_for_list(request, "/schemas");
        if (has_agent_failed(request))
                return api_reply_agent_error(request);
        schemas = json_loads(request->reply_body, 0, NULL);
        document = schemas ? openapi_document(path, schemas) : NULL;
        return document ? reply_json(request, "application/json", json_incref(document))
                        : reply_no_resource(request);
}

/* ---- routes ---- */

static bool is_beneath(const char *path, const char *parent) {
        size_t length = strlen(parent);

        return strncmp(path, parent, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

bool api_is_kubernetes_path(const char *path) {
        static const char *const parents[] = { "/api", "/apis", "/version", "/openapi" };

        if (streq(path, "/"))
                return true;
        for (size_t i = 0; i < N_ELEMENTS(parents); i++)
                if (is_beneath(path, parents[i]))
                        return true;
        return false;
}

char *api_node_proxy_path(const char *path, const char *node) {
        static const char parent[] = "/api/v1/nodes/";
        size_t length = strlen(node);
        const char *rest = path + sizeof(parent) - 1;

        if (strncmp(path, parent, sizeof(parent) - 1) != 0)
                return NULL;
        if (strncmp(rest, "https:", 6) == 0)
                rest += 6;
        if (strncmp(rest, node, length) != 0)
                return NULL;
        rest += length;
        if (*rest == ':')
                rest += 1 + strspn(rest + 1, "0123456789");
        if (strncmp(rest, "/proxy", 6) != 0 || (rest[6] != '\0' && rest[6] != '/'))
                return NULL;
        return strdup(rest[6] ? rest + 6 : "/");
}

static ApiStepResult route_self_review(ApiRequest *request, const ResourcePath *path) {
        ApiStepResult result = API_STEP_NEXT;

        if (streq(request->method, "POST") && !path->name)
                result = api_handle_self_review(request, path);
        return result == API_STEP_NEXT ? reply_no_resource(request) : result;
}

ApiStepResult api_route_kubernetes(ApiRequest *request) {
        cleanup_with(resource_path_done) ResourcePath path = { 0 };
        bool is_read = streq(request->method, "GET");
        const ServedResource *resource;

        if (is_read && streq(request->path, "/version"))
                return reply_version(request);
        if (is_read && streq(request->path, "/openapi/v2"))
                return reply_openapi_v2(request);
        if (is_read && streq(request->path, "/"))
                return reply_json(request, "application/json", discovery_paths());
        if (is_read && streq(request->path, "/openapi/v3"))
                return reply_json(request, "application/json", openapi_index());
        if (is_read && openapi_path_parse(request->path, &path) >= 0)
                return reply_openapi_v3(request, &path);
        if (resource_path_parse(request->path, &path) < 0 || !path.resource)
                return is_read ? reply_discovery(request) : api_refuse_write(request, NULL, &path);
        resource = find_served_resource(&path);
        if (!resource)
                return route_self_review(request, &path);
        if (path.subresource)
                return handle_subresource(request, resource, &path);
        return is_read ? handle_read(request, resource, &path)
                       : api_handle_write(request, resource, &path);
}
