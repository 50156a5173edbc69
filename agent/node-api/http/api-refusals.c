/* SPDX-License-Identifier: Apache-2.0 */

/* Writes that a node without an API server refuses (405): each response names the source of the
 * object, which must be edited instead. */

#include "agent/model/own-keys.h"
#include "agent/node-api/process/node-api-private.h"
#include "agent/node-api/wire/protobuf-body.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"

#define ALONE "this node is without an API server: "

/* ---- the source of an object ---- */

/* The source as the agent prints it in an annotation (model/pod-source.h): "file web.yaml", "url",
 * "index web.yaml"; for pods of a DaemonSet, within "evaluated (...)". */
typedef struct ObjectOrigin {
        enum {
                ORIGIN_UNKNOWN,
                ORIGIN_FILE,
                ORIGIN_URL,
                ORIGIN_INDEX,
        } kind;
        char *file; /* for a file and an index */
} ObjectOrigin;

static void object_origin_done(ObjectOrigin *origin) {
        free(origin->file);
}

static bool take_prefix(const char **text, const char *prefix) {
        size_t length = strlen(prefix);

        if (strncmp(*text, prefix, length) != 0)
                return false;
        *text += length;
        return true;
}

static int read_object_origin(const json_t *object, ObjectOrigin *ret) {
        const char *text = strna(own_json_value(object, OWN_KEY_SOURCE));
        bool is_evaluated = take_prefix(&text, "evaluated (");
        ObjectOrigin origin = { ORIGIN_UNKNOWN, NULL };

        if (take_prefix(&text, "file "))
                origin.kind = ORIGIN_FILE;
        else if (take_prefix(&text, "index "))
                origin.kind = ORIGIN_INDEX;
        else if (take_prefix(&text, "url"))
                origin.kind = ORIGIN_URL;
        if (origin.kind == ORIGIN_FILE || origin.kind == ORIGIN_INDEX) {
                origin.file = strndup(text, strlen(text) - (is_evaluated && *text ? 1 : 0));
                if (!origin.file)
                        return -ENOMEM;
        }
        *ret = origin;
        return 0;
}

static const char *manifest_directory(const ApiRequest *request) {
        return strna(request->server->settings.manifest_directory);
}

/* "/etc/kubernetes/manifests/web.yaml", or the directory. */
static ApiStepResult refuse_for_file(ApiRequest *request, const char *remedy, const char *file) {
        return api_replyf(request, MHD_HTTP_METHOD_NOT_ALLOWED, ALONE "%s %s%s%s", remedy,
                          manifest_directory(request), file ? "/" : "", strna(file));
}

static bool is_deletion(const ApiRequest *request) {
        return streq(request->method, "DELETE");
}

static ApiStepResult refuse_for_origin(ApiRequest *request, const ObjectOrigin *origin) {
        switch (origin->kind) {
        case ORIGIN_URL:
                return api_reply_text(request, MHD_HTTP_METHOD_NOT_ALLOWED,
                                      ALONE "this object is of the manifests that staticPodURL "
                                            "names; edit them at their server");
        case ORIGIN_INDEX:
                return api_replyf(request, MHD_HTTP_METHOD_NOT_ALLOWED,
                                  ALONE "this object is of a signed index; edit %s and publish "
                                        "the next index, see mainstay-source(5)",
                                  origin->file);
        case ORIGIN_FILE:
                return refuse_for_file(request,
                                       is_deletion(request) ? "its objects are files; to delete "
                                                              "this one, remove or edit"
                                                            : "its objects are files; edit",
                                       origin->file);
        case ORIGIN_UNKNOWN:
                break;
        }
        return refuse_for_file(request, "its objects are files; edit", NULL);
}

/* ---- objects of no file ---- */

/* The reason why no file contains objects of a kind; NULL: files contain them. */
static const char *explain_kind(const char *kind, bool exists) {
        static const struct {
                const char *kind, *reason;
        } reasons[] = {
                { "CronJob", "nothing here runs CronJobs; write a Pod with the restartPolicy "
                             "OnFailure instead" },
                { "Deployment", "nothing here runs Deployments; write a DaemonSet or a Pod "
                                "instead" },
                { "ReplicaSet", "nothing here runs ReplicaSets; write a DaemonSet or a Pod "
                                "instead" },
                { "ReplicationController", "nothing here runs ReplicationControllers; write a "
                                           "DaemonSet or a Pod instead" },
                { "StatefulSet", "nothing here runs StatefulSets; write a DaemonSet or a Pod "
                                 "instead" },
                { "ControllerRevision", "revisions are made of its DaemonSets" },
                { "Event", "events are made by the node, and removed after a while" },
                { "Job", "nothing here runs Jobs; write a Pod with the restartPolicy OnFailure "
                         "instead" },
                { "Lease", "the Lease is that of the node itself" },
                { "Namespace", "a namespace exists while a pod is in it" },
                { "NodeMetrics", "metrics are measured" },
                { "PodDisruptionBudget", "nothing evicts its pods, so budgets have no effect" },
                { "PodMetrics", "metrics are measured" },
                { "Service", "nothing here serves Services; use hostPort or hostNetwork" },
        };

        if (exists && streq(kind, "PriorityClass"))
                return "this PriorityClass is built in";
        for (size_t i = 0; i < N_ELEMENTS(reasons); i++)
                if (streq(reasons[i].kind, kind))
                        return reasons[i].reason;
        return NULL;
}

static ApiStepResult refuse_without_file(ApiRequest *request, const ServedResource *resource,
                                         bool exists, const char *name) {
        const char *reason = explain_kind(resource->kind, exists);

        if (reason)
                return api_replyf(request, MHD_HTTP_METHOD_NOT_ALLOWED,
                                  ALONE "%s; edit %s to change what this node runs", reason,
                                  manifest_directory(request));
        if (exists || !name)
                return refuse_for_file(request, "its objects are files; edit", NULL);
        return api_replyf(request, MHD_HTTP_METHOD_NOT_ALLOWED,
                          ALONE "its objects are files; edit %s: save the manifest of %s %s there",
                          manifest_directory(request), resource->singular, name);
}

ApiStepResult api_refuse_write(ApiRequest *request, const ServedResource *resource,
                               const ResourcePath *path) {
        cleanup_with(object_origin_done) ObjectOrigin origin = { 0 };
        const json_t *object = request->object ? request->object : request->manifest_pod;

        if (!resource)
                return refuse_for_file(request, "its objects are files; edit", NULL);
        if (object && read_object_origin(object, &origin) < 0)
                return API_STEP_ABORT;
        return origin.kind == ORIGIN_UNKNOWN
                       ? refuse_without_file(request, resource, object, path->name)
                       : refuse_for_origin(request, &origin);
}

ApiStepResult api_refuse_eviction(ApiRequest *request) {
        cleanup_with(object_origin_done) ObjectOrigin origin = { 0 };

        if (read_object_origin(request->object, &origin) < 0)
                return API_STEP_ABORT;
        return api_replyf(
                request, MHD_HTTP_METHOD_NOT_ALLOWED,
                "pod %s cannot be evicted: it would start again, because it is from a file; "
                "remove %s%s%s",
                strna(json_text(request->object, "metadata", "name")), manifest_directory(request),
                origin.kind == ORIGIN_FILE ? "/" : "",
                origin.kind == ORIGIN_FILE ? origin.file : "");
}

/* ---- the node ---- */

/* kubectl cordon and drain start by changing spec.unschedulable; label, annotate and taint change
 * other members. */
static ApiStepResult refuse_node_change(ApiRequest *request) {
        cleanup_json json_t *body = api_parse_body(request);
        const char *config = strna(request->server->settings.config_file);

        if (is_deletion(request))
                return api_replyf(request, MHD_HTTP_METHOD_NOT_ALLOWED,
                                  ALONE "it is this machine, and cannot be deleted; to stop pods, "
                                        "remove their files from %s",
                                  manifest_directory(request));
        if (!json_object_size(body) || json_at(body, "spec", "unschedulable"))
                return api_replyf(request, MHD_HTTP_METHOD_NOT_ALLOWED,
                                  ALONE "it cannot be cordoned or drained, as nothing else would "
                                        "run its pods; to stop pods, remove their files from %s",
                                  manifest_directory(request));
        return api_replyf(request, MHD_HTTP_METHOD_NOT_ALLOWED,
                          ALONE "labels and taints of the node are in its configuration; edit "
                                "mainstay.nodeLabels or registerWithTaints in %s",
                          config);
}

/* ---- all ---- */

/* Only the metadata is needed. */
static json_t *parse_new_object(const ApiRequest *request) {
        return !request->is_body_too_large && is_protobuf_body(request->body, request->n_body)
                       ? protobuf_body_metadata(request->body, request->n_body)
                       : api_parse_body(request);
}

/* The body names the object that the client creates, which may already exist. */
static ApiStepResult refuse_creation(ApiRequest *request, const ServedResource *resource,
                                     const ResourcePath *path) {
        cleanup_json json_t *body = parse_new_object(request);
        const char *namespace = json_text(body, "metadata", "namespace");
        ResourcePath named = *path;
        ApiStepResult result;

        named.name = json_text(body, "metadata", "name");
        if (resource->is_namespaced && !named.namespace)
                named.namespace = namespace;
        if (!named.name)
                return api_refuse_write(request, resource, &named);
        if (!api_find_object(request, resource, &named, &result) && result != API_STEP_NEXT)
                return result;
        return api_refuse_write(request, resource, &named);
}

ApiStepResult api_refuse_any_write(ApiRequest *request, const ServedResource *resource,
                                   const ResourcePath *path) {
        ApiStepResult result;

        if (streq(resource->plural, "nodes") && !resource->group[0] && path->name)
                return refuse_node_change(request);
        if (!path->name)
                return refuse_creation(request, resource, path);
        if (!api_find_object(request, resource, path, &result) && result != API_STEP_NEXT)
                return result;
        return is_deletion(request) && !request->object && !request->manifest_pod
                       ? api_reply_no_object(request, resource, path->name)
                       : api_refuse_write(request, resource, path);
}
