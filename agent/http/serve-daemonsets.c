/* SPDX-License-Identifier: Apache-2.0 */

/* GET /daemonsets, /revisions and /node, also as a watch, and
 * POST /daemonsets/<namespace>/<name>/<verb>?revision=<n>. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"
#include "agent/http/object-watch.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

/* ---- DaemonSets and their revisions ---- */

static int print_list_item(const char *key, const char *json, void *context) {
        FILE *out = context;

        fprintf(out, "%s%s", ftell(out) > 0 ? "," : "", json);
        return 0;
}

static enum MHD_Result reply_apps_list(HttpServer *server, struct MHD_Connection *http,
                                       const char *kind, http_objects_t objects) {
        cleanup_free char *items = NULL;
        size_t length;
        FILE *out = open_memstream(&items, &length);
        int r;

        if (!out)
                return MHD_NO;
        r = objects(server, print_list_item, out);
        if (!memstream_finish(out, &items) || r < 0)
                return MHD_NO;
        return http_reply_json_consume(
                http, text_format("{\"kind\":\"%sList\",\"apiVersion\":\"apps/v1\",\"metadata\":{},"
                                  "\"items\":[%s]}\n",
                                  kind, items));
}

static int each_daemonset(HttpServer *server, http_each_object_t each, void *context) {
        return http_handlers_of(server)->foreach_daemonset(http_userdata_of(server), each, context);
}

static int each_revision(HttpServer *server, http_each_object_t each, void *context) {
        return http_handlers_of(server)->foreach_revision(http_userdata_of(server), each, context);
}

enum MHD_Result http_handle_get_daemonsets(HttpServer *server, struct MHD_Connection *http,
                                           const char *rest) {
        return http_query_flag(http, "watch")
                       ? reply_object_watch(server, http, HTTP_DAEMONSETS, each_daemonset)
                       : reply_apps_list(server, http, "DaemonSet", each_daemonset);
}

/* Revisions change with their DaemonSets. */
enum MHD_Result http_handle_get_revisions(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest) {
        return http_query_flag(http, "watch")
                       ? reply_object_watch(server, http, HTTP_DAEMONSETS, each_revision)
                       : reply_apps_list(server, http, "ControllerRevision", each_revision);
}

/* ---- the node, actions ---- */

/* There is exactly one. */
static int each_node(HttpServer *server, http_each_object_t each, void *context) {
        cleanup_free char *json = http_handlers_of(server)->node(http_userdata_of(server));

        return json ? each("", json, context) : -ENOMEM;
}

enum MHD_Result http_handle_get_node(HttpServer *server, struct MHD_Connection *http,
                                     const char *rest) {
        if (http_query_flag(http, "watch"))
                return reply_object_watch(server, http, HTTP_NODE, each_node);
        return http_reply_json_consume(http,
                                       http_handlers_of(server)->node(http_userdata_of(server)));
}

static bool is_daemonset_action(const char *word) {
        return TEXT_IS_ANY_OF(word, "undo", "restart", "delete", "orphan");
}

/* Whether the verb removes the DaemonSet's file. */
static bool removes_daemonset(const char *verb) {
        return streq(verb, "delete") || streq(verb, "orphan");
}

static enum MHD_Result run_daemonset_action(HttpServer *server, struct MHD_Connection *http,
                                            const char *namespace, const char *name,
                                            const char *verb) {
        cleanup_error Error error = ERROR_NULL;
        int64_t revision = 0;
        int r = http_query_number(http, "revision", 0, &revision, &error);

        if (r < 0)
                return http_reply_errno(http, r, &error);
        r = http_handlers_of(server)->run_daemonset_action(http_userdata_of(server), namespace,
                                                           name, verb, revision, &error);
        if (r < 0)
                return http_reply_errno(http, r, &error);
        return http_reply_text(http, MHD_HTTP_OK, "text/plain", r > 0 ? "unchanged\n" : "done\n");
}

enum MHD_Result http_handle_daemonset_action(HttpServer *server, struct MHD_Connection *http,
                                             const char *rest) {
        cleanup_free char *path = strdup(rest);
        char *words = path;
        const char *namespace = words ? strsep(&words, "/") : NULL;
        const char *name = words ? strsep(&words, "/") : NULL;
        const char *verb = words ? strsep(&words, "/") : NULL;
        enum MHD_Result result;

        if (!path)
                return MHD_NO;
        if (!verb || words || !is_daemonset_action(verb))
                return http_reply_unknown_path(http);
        if (removes_daemonset(verb) ? !http_require_root(http, &result)
                                    : !http_require_writer(server, http, &result))
                return result;
        return run_daemonset_action(server, http, namespace, name, verb);
}
