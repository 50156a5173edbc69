/* SPDX-License-Identifier: Apache-2.0 */

/* GET /daemonsets (a list or a watch), /revisions and /node, and
 * POST /daemonsets/<namespace>/<name>/<verb>?revision=<n>.
 *
 * A watch is not queued: when it has sent everything, it compares the sets with what it sent last.
 * A slow client gets the latest state of a set instead of each. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"
#include "agent/http/stream-text.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <stdlib.h>

/* ---- the list ---- */

static int print_daemonset_item(const char *key, const char *json, void *context) {
        FILE *out = context;

        fprintf(out, "%s%s", ftell(out) > 0 ? "," : "", json);
        return 0;
}

static enum MHD_Result reply_daemonset_list(HttpServer *server, struct MHD_Connection *http) {
        cleanup_free char *items = NULL;
        char *text;
        size_t length;
        FILE *out = open_memstream(&items, &length);
        int r;

        if (!out)
                return MHD_NO;
        r = http_handlers_of(server)->foreach_daemonset(http_userdata_of(server),
                                                        print_daemonset_item, out);
        if (!memstream_finish(out, &items) || r < 0 ||
            asprintf(&text,
                     "{\"kind\":\"DaemonSetList\",\"apiVersion\":\"apps/v1\",\"metadata\":{},"
                     "\"items\":[%s]}\n",
                     items) < 0)
                return MHD_NO;
        return http_reply_json_consume(http, text);
}

/* ---- the watch ---- */

typedef struct ReportedDaemonSet {
        char *key;
        char *json;
} ReportedDaemonSet;

typedef LIST_OF(ReportedDaemonSet) ReportedDaemonSets;

typedef struct DaemonSetWatch {
        HttpServer *server;
        ReportedDaemonSets reported;
        bool is_due; /* the sets may have changed since they were compared */
        StreamText text;
} DaemonSetWatch;

static void reported_daemonsets_done(ReportedDaemonSets *reported) {
        for (size_t i = 0; i < reported->n; i++) {
                free(reported->items[i].key);
                free(reported->items[i].json);
        }
        free(reported->items);
        *reported = (ReportedDaemonSets){ 0 };
}

/* The sets as sent last and as they are now, and the watch events of the difference. */
typedef struct DaemonSetComparison {
        const ReportedDaemonSets *before;
        ReportedDaemonSets now;
        FILE *lines;
} DaemonSetComparison;

static const ReportedDaemonSet *find_reported_daemonset(const ReportedDaemonSets *reported,
                                                        const char *key) {
        for (size_t i = 0; i < reported->n; i++)
                if (streq(reported->items[i].key, key))
                        return &reported->items[i];
        return NULL;
}

static void print_daemonset_watch_event(FILE *out, const char *type, const char *json) {
        fprintf(out, "{\"type\":\"%s\",\"object\":%s}\n", type, json);
}

static int compare_reported_daemonset(const char *key, const char *json, void *context) {
        DaemonSetComparison *comparison = context;
        const ReportedDaemonSet *before = find_reported_daemonset(comparison->before, key);
        ReportedDaemonSets *now = &comparison->now;
        ReportedDaemonSet *longer = reallocarray(now->items, now->n + 1, sizeof(*longer));
        ReportedDaemonSet set = { strdup(key), strdup(json) };

        if (longer)
                now->items = longer;
        if (!longer || !set.key || !set.json) {
                free(set.key);
                free(set.json);
                return -ENOMEM;
        }
        longer[now->n++] = set;
        if (!before || !streq(before->json, json))
                print_daemonset_watch_event(comparison->lines, before ? "MODIFIED" : "ADDED", json);
        return 0;
}

/* The watch events of all changes since the last call, a line each. */
static int format_daemonset_changes(DaemonSetWatch *watch, char **ret) {
        cleanup_free char *text = NULL;
        size_t length;
        DaemonSetComparison comparison = { .before = &watch->reported,
                                           .lines = open_memstream(&text, &length) };
        int r;

        if (!comparison.lines)
                return -ENOMEM;
        r = http_handlers_of(watch->server)
                    ->foreach_daemonset(http_userdata_of(watch->server), compare_reported_daemonset,
                                        &comparison);
        for (size_t i = 0; i < watch->reported.n && r >= 0; i++)
                if (!find_reported_daemonset(&comparison.now, watch->reported.items[i].key))
                        print_daemonset_watch_event(comparison.lines, "DELETED",
                                                    watch->reported.items[i].json);
        if (!memstream_finish(comparison.lines, &text) || r < 0) {
                reported_daemonsets_done(&comparison.now);
                return r < 0 ? r : -ENOMEM;
        }
        reported_daemonsets_done(&watch->reported);
        watch->reported = comparison.now;
        *ret = TAKE_PTR(text);
        return 0;
}

static int next_daemonset_watch_text(void *userdata) {
        DaemonSetWatch *watch = userdata;
        cleanup_free char *lines = NULL;
        int r;

        if (!watch->is_due)
                return 0;
        watch->is_due = false;
        r = format_daemonset_changes(watch, &lines);
        return r < 0 || !lines[0] ? r : stream_text_format(&watch->text, "", lines, "");
}

static ssize_t read_daemonset_watch(void *source, char *buffer, size_t size) {
        DaemonSetWatch *watch = source;

        return stream_text_read(&watch->text, next_daemonset_watch_text, watch, buffer, size);
}

static void daemonset_watch_free(void *source) {
        DaemonSetWatch *watch = source;

        reported_daemonsets_done(&watch->reported);
        stream_text_done(&watch->text);
        free(watch);
}

static const ResponseStreamKind daemonset_watch_kind = { "application/json", true,
                                                         read_daemonset_watch,
                                                         daemonset_watch_free };

enum MHD_Result http_handle_get_daemonsets(HttpServer *server, struct MHD_Connection *http,
                                           const char *rest) {
        DaemonSetWatch *watch;

        if (!http_query_flag(http, "watch"))
                return reply_daemonset_list(server, http);
        watch = calloc(1, sizeof(*watch));
        if (!watch)
                return MHD_NO;
        watch->server = server;
        watch->is_due = true;
        return response_stream_start(http_streams_of(server), http, &daemonset_watch_kind, watch,
                                     NULL);
}

void http_server_notify_daemonsets(HttpServer *server) {
        const ResponseStreams *streams = http_streams_of(server);
        ResponseStream *stream = NULL;

        while ((stream = response_stream_next(streams, &daemonset_watch_kind, stream))) {
                DaemonSetWatch *watch = response_stream_source(stream);

                watch->is_due = true;
                response_stream_wake(stream);
        }
}

/* ---- revisions, the node, actions ---- */

enum MHD_Result http_handle_get_revisions(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest) {
        return http_reply_json_consume(
                http, http_handlers_of(server)->revisions(http_userdata_of(server)));
}

enum MHD_Result http_handle_get_node(HttpServer *server, struct MHD_Connection *http,
                                     const char *rest) {
        return http_reply_json_consume(http,
                                       http_handlers_of(server)->node(http_userdata_of(server)));
}

static bool is_daemonset_action(const char *word) {
        static const char *const verbs[] = { "undo", "restart", "delete", "orphan" };

        for (size_t i = 0; i < N_ELEMENTS(verbs); i++)
                if (streq(verbs[i], word))
                        return true;
        return false;
}

static enum MHD_Result run_daemonset_action(HttpServer *server, struct MHD_Connection *http,
                                            const char *namespace, const char *name,
                                            const char *verb) {
        cleanup_error Error error = ERROR_NULL;
        int64_t revision = 0;
        int r = http_query_number(http, "revision", 0, &revision, &error);

        if (r >= 0)
                r = http_handlers_of(server)->run_daemonset_action(
                        http_userdata_of(server), namespace, name, verb, revision, &error);
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
        if (!http_require_root(http, &result))
                return result;
        if (!verb || words || !is_daemonset_action(verb))
                return http_reply_unknown_path(http);
        return run_daemonset_action(server, http, namespace, name, verb);
}
