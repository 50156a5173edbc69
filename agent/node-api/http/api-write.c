/* SPDX-License-Identifier: Apache-2.0 */

/* Writes that a node without an API server accepts: stopping a pod, which then starts again; adding
 * an ephemeral container; restarting a DaemonSet and rolling it back. Files are the only source of
 * objects: api-refusals.c refuses all other writes. */

#include "agent/node-api/access/self-reviews.h"
#include "agent/node-api/http/request-url.h"
#include "agent/node-api/process/node-api-private.h"
#include "agent/node-api/wire/protobuf-body.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"

#include <inttypes.h>

/* ---- the body ---- */

json_t *api_parse_body(const ApiRequest *request) {
        json_t *body;

        if (request->is_body_too_large)
                return NULL;
        if (request->n_body == 0)
                return json_object();
        if (is_protobuf_body(request->body, request->n_body))
                return protobuf_body_parse(request->body, request->n_body);
        body = json_loadb(request->body, request->n_body, 0, NULL);
        if (json_is_object(body))
                return body;
        json_decref(body);
        return NULL;
}

static ApiStepResult refuse_body(ApiRequest *request) {
        if (request->is_body_too_large)
                return api_reply_text(request, MHD_HTTP_CONTENT_TOO_LARGE,
                                      "the body of the request is too large");
        return api_reply_text(request, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                              "the body of the request is not a known object in JSON or protobuf");
}

static bool is_dry_run(const ApiRequest *request, const json_t *options) {
        return api_parameter(request->http, "dryRun") ||
               json_array_size(json_object_get(options, "dryRun")) > 0;
}

/* ---- requests that change something ---- */

/* "/a/b", escaped, followed by 'query'. */
static char *format_agent_path(const char *prefix, const char *const *names, size_t n,
                               const char *query) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        fputs(prefix, out);
        url_write_components(out, names, n);
        fputs(query, out);
        return memstream_finish(out, &text) ? text : NULL;
}

static ApiStepResult ask_agent_to_write(ApiRequest *request, const char *method, const char *path) {
        if (!path)
                return API_STEP_ABORT;
        return api_request_ask_agent(
                request,
                &(AgentRequestSpec){ .kind = AGENT_COLLECT, .method = method, .path = path });
}

static bool has_agent_agreed(const ApiRequest *request) {
        return request->reply_error >= 0 && request->reply_status == MHD_HTTP_OK;
}

/* The object after the agent has carried out the request. */
static ApiStepResult reply_written_object(ApiRequest *request, const ServedResource *resource,
                                          const ResourcePath *path) {
        if (!request->is_written && !has_agent_agreed(request))
                return api_reply_agent_error(request);
        if (!request->is_written) {
                request->is_written = true;
                request->has_looked = false;
                json_decref(TAKE_PTR(request->object));
                api_request_clear_reply(request);
        }
        return api_handle_get(request, resource, path);
}

/* ---- pods ---- */

/* The reply has no UID, because kubectl waits until there is no pod with that UID, and the next pod
 * has the same one. */
static ApiStepResult reply_pod_deleted(ApiRequest *request, const ResourcePath *path) {
        cleanup_json json_t *status = json_pack(
                "{s:s, s:s, s:{}, s:s, s:{s:s, s:s}}", "kind", "Status", "apiVersion", "v1",
                "metadata", "status", "Success", "details", "name", path->name, "kind", "pods");
        cleanup_free char *text = status ? json_to_text(status, JSON_COMPACT) : NULL;

        return text ? api_reply_typed(request, MHD_HTTP_OK, "application/json", text)
                    : API_STEP_ABORT;
}

static int read_grace_period(const ApiRequest *request, const json_t *options, char *query,
                             size_t size, Error *reterr) {
        const json_t *seconds = json_object_get(options, "gracePeriodSeconds");
        const char *text = api_parameter(request->http, "gracePeriodSeconds");
        json_int_t number = -1;
        char *end;

        query[0] = '\0';
        if (json_is_integer(seconds)) {
                number = json_integer_value(seconds);
        } else if (text) {
                errno = 0;
                number = strtoll(text, &end, 10);
                if (errno != 0 || end == text || *end != '\0')
                        number = -1;
        } else {
                return 0;
        }
        if (number < 0)
                return error_setf(reterr, EINVAL,
                                  "gracePeriodSeconds must be a number that is not negative");
        (void) snprintf(query, size, "?gracePeriodSeconds=%" JSON_INTEGER_FORMAT, number);
        return 0;
}

static ApiStepResult start_pod_deletion(ApiRequest *request, const ResourcePath *path,
                                        const json_t *options) {
        const char *names[] = { path->namespace, "pods", path->name };
        const char *uid = json_text(options, "preconditions", "uid");
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *agent_path = NULL;
        char query[64];
        int r = read_grace_period(request, options, query, sizeof(query), &error);

        if (r < 0)
                return api_reply_text(request, MHD_HTTP_BAD_REQUEST, error_message(&error, r));
        if (uid && !streq_ptr(uid, json_text(request->object, "metadata", "uid")))
                return api_replyf(request, MHD_HTTP_CONFLICT,
                                  "the UID in the precondition is not that of pod %s", path->name);
        if (is_dry_run(request, options))
                return reply_pod_deleted(request, path);
        agent_path = format_agent_path("/api/v1/namespaces", names, N_ELEMENTS(names), query);
        return ask_agent_to_write(request, "DELETE", agent_path);
}

static ApiStepResult delete_pod(ApiRequest *request, const ServedResource *pods,
                                const ResourcePath *path) {
        cleanup_json json_t *options = api_parse_body(request);
        ApiStepResult result;

        if (!options)
                return refuse_body(request);
        if (!api_find_object(request, pods, path, &result))
                return result == API_STEP_NEXT ? api_refuse_any_write(request, pods, path) : result;
        if (!request->has_reply)
                return start_pod_deletion(request, path, options);
        return has_agent_agreed(request) ? reply_pod_deleted(request, path)
                                         : api_reply_agent_error(request);
}

static bool has_ephemeral_container(const json_t *pod, const char *name) {
        size_t i;
        const json_t *container;

        json_array_foreach(json_at(pod, "spec", "ephemeralContainers"), i, container)
                if (streq_ptr(json_text(container, "name"), name))
                        return true;
        return false;
}

/* The container that a patch, or a pod, adds to the pod; NULL: none, or more than one. */
static const json_t *find_new_container(const json_t *pod, const json_t *body) {
        const json_t *found = NULL, *container;
        size_t i;

        json_array_foreach(json_at(body, "spec", "ephemeralContainers"), i, container) {
                if (has_ephemeral_container(pod, json_text(container, "name")))
                        continue;
                if (found)
                        return NULL;
                found = container;
        }
        return found;
}

static ApiStepResult request_ephemeral_container(ApiRequest *request, const ServedResource *pods,
                                                 const ResourcePath *path, const json_t *body) {
        const char *names[] = { path->namespace, "pods", path->name, "ephemeralcontainers" };
        const json_t *container = find_new_container(request->object, body);
        cleanup_free char *json = container ? json_to_text(container, JSON_COMPACT) : NULL;
        cleanup_free char *start =
                format_agent_path("/api/v1/namespaces", names, N_ELEMENTS(names), "?container=");
        cleanup_free char *agent_path = NULL;
        size_t size;
        FILE *out;

        if (json && is_dry_run(request, NULL))
                return api_handle_get(request, pods, path);
        if (!json)
                return api_reply_text(request, 422,
                                      "spec.ephemeralContainers: one container must be added, and "
                                      "none can be changed or removed");
        out = start ? open_memstream(&agent_path, &size) : NULL;
        if (!out)
                return API_STEP_ABORT;
        fputs(start, out);
        url_write_escaped(out, json);
        return memstream_finish(out, &agent_path) ? ask_agent_to_write(request, "POST", agent_path)
                                                  : API_STEP_ABORT;
}

static ApiStepResult add_ephemeral_container(ApiRequest *request, const ServedResource *pods,
                                             const ResourcePath *path) {
        cleanup_json json_t *body = api_parse_body(request);
        ApiStepResult result;

        if (!body)
                return refuse_body(request);
        if (request->is_written)
                return api_handle_get(request, pods, path);
        if (!api_require_object(request, pods, path, &result))
                return result;
        return request->has_reply ? reply_written_object(request, pods, path)
                                  : request_ephemeral_container(request, pods, path, body);
}

ApiStepResult api_handle_pod_write(ApiRequest *request, const ServedResource *pods,
                                   const ResourcePath *path) {
        ApiStepResult result;

        if (streq(path->subresource, "ephemeralcontainers") &&
            (streq(request->method, "PATCH") || streq(request->method, "PUT")))
                return add_ephemeral_container(request, pods, path);
        if (!api_require_object(request, pods, path, &result))
                return result;
        return streq(path->subresource, "eviction") ? api_refuse_eviction(request)
                                                    : api_refuse_write(request, pods, path);
}

/* ---- DaemonSets ---- */

#define RESTARTED_AT "kubectl.kubernetes.io/restartedAt"

/* kubectl rollout restart sets a template annotation, and nothing else. */
static bool is_restart_patch(const json_t *patch) {
        cleanup_json json_t *expected = NULL;
        json_t *at = json_at(patch, "spec", "template", "metadata", "annotations", RESTARTED_AT);

        if (!json_is_string(at))
                return false;
        expected = json_pack("{s:{s:{s:{s:{s:O}}}}}", "spec", "template", "metadata", "annotations",
                             RESTARTED_AT, at);
        return expected && json_equal(expected, patch);
}

static bool is_owned_revision(const json_t *revision, const json_t *set) {
        const json_t *owner = json_array_get(json_at(revision, "metadata", "ownerReferences"), 0);
        const char *uid = json_text(owner, "uid");

        return uid && streq_ptr(uid, json_text(set, "metadata", "uid"));
}

/* kubectl rollout undo sends a patch with a revision's data. Returns the revision's number; 0: none
 * matches. */
static json_int_t find_patched_revision(const json_t *set, const json_t *patch,
                                        const char *revisions) {
        cleanup_json json_t *list = json_loads(revisions, 0, NULL);
        size_t i;
        const json_t *revision;

        json_array_foreach(json_object_get(list, "items"), i, revision)
                if (is_owned_revision(revision, set) &&
                    json_equal(json_object_get(revision, "data"), patch))
                        return json_integer_value(json_object_get(revision, "revision"));
        return 0;
}

static ApiStepResult act_on_daemonset(ApiRequest *request, const ResourcePath *path,
                                      const char *verb, json_int_t revision) {
        const char *names[] = { path->namespace, path->name, verb };
        cleanup_free char *agent_path = NULL;
        char query[64] = "";

        if (revision > 0)
                (void) snprintf(query, sizeof(query), "?revision=%" JSON_INTEGER_FORMAT, revision);
        request->is_acting = true;
        agent_path = format_agent_path("/daemonsets", names, N_ELEMENTS(names), query);
        return ask_agent_to_write(request, "POST", agent_path);
}

static ApiStepResult undo_patched_rollout(ApiRequest *request, const ServedResource *sets,
                                          const ResourcePath *path, const json_t *patch) {
        json_int_t revision;

        if (!request->has_reply)
                return ask_agent_to_write(request, "GET", "/revisions");
        if (!has_agent_agreed(request))
                return api_reply_agent_error(request);
        revision = find_patched_revision(request->object, patch, request->reply_body);
        if (revision == 0)
                return api_refuse_write(request, sets, path);
        api_request_clear_reply(request);
        return act_on_daemonset(request, path, "undo", revision);
}

static ApiStepResult patch_daemonset(ApiRequest *request, const ServedResource *sets,
                                     const ResourcePath *path) {
        cleanup_json json_t *patch = api_parse_body(request);
        ApiStepResult result;

        if (request->is_written)
                return api_handle_get(request, sets, path);
        if (!api_find_object(request, sets, path, &result) && result != API_STEP_NEXT)
                return result;
        if (!request->object || !patch || is_dry_run(request, NULL))
                return api_refuse_write(request, sets, path);
        if (request->is_acting)
                return reply_written_object(request, sets, path);
        return is_restart_patch(patch) ? act_on_daemonset(request, path, "restart", 0)
                                       : undo_patched_rollout(request, sets, path, patch);
}

/* ---- all ---- */

ApiStepResult api_handle_write(ApiRequest *request, const ServedResource *resource,
                               const ResourcePath *path) {
        if (path->name && path->namespace && streq(resource->plural, "pods") &&
            !resource->group[0] && streq(request->method, "DELETE"))
                return delete_pod(request, resource, path);
        if (path->name && path->namespace && streq(resource->plural, "daemonsets") &&
            streq(request->method, "PATCH"))
                return patch_daemonset(request, resource, path);
        return api_refuse_any_write(request, resource, path);
}

ApiStepResult api_handle_self_review(ApiRequest *request, const ResourcePath *path) {
        cleanup_json json_t *review = api_parse_body(request), *reply = NULL;
        cleanup_free char *text = NULL;

        if (!review)
                return refuse_body(request);
        reply = self_review_reply(path->group, path->resource, &request->user, review);
        if (!reply)
                return API_STEP_NEXT;
        text = json_to_text(reply, JSON_COMPACT);
        return text ? api_reply_typed(request, MHD_HTTP_CREATED, "application/json", text)
                    : API_STEP_ABORT;
}
