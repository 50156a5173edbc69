/* SPDX-License-Identifier: Apache-2.0 */

/* The watch of a kind with few objects; see the header. A slow client gets only the latest state of
 * an object, and not each intermediate one. */

#include "agent/http/object-watch.h"

#include "agent/http/http-server.h"
#include "agent/http/stream-text.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <stdlib.h>

typedef struct ReportedObject {
        char *key;
        char *json;
} ReportedObject;

typedef LIST_OF(ReportedObject) ReportedObjects;

typedef struct ObjectWatch {
        HttpServer *server;
        ReportedObjects reported;
        HttpObjects kind;
        http_objects_t each;
        bool is_due; /* the objects may have changed since the last comparison */
        WatchBookmark bookmark;
        StreamText text;
} ObjectWatch;

static void reported_objects_done(ReportedObjects *reported) {
        for (size_t i = 0; i < reported->n; i++) {
                free(reported->items[i].key);
                free(reported->items[i].json);
        }
        free(reported->items);
        *reported = (ReportedObjects){ 0 };
}

/* The objects as sent last and as they are now, and the watch events of the difference. */
typedef struct ObjectComparison {
        const ReportedObjects *before;
        ReportedObjects now;
        FILE *lines;
} ObjectComparison;

static const ReportedObject *find_reported_object(const ReportedObjects *reported,
                                                  const char *key) {
        for (size_t i = 0; i < reported->n; i++)
                if (streq(reported->items[i].key, key))
                        return &reported->items[i];
        return NULL;
}

static void print_object_watch_event(FILE *out, const char *type, const char *json) {
        fprintf(out, "{\"type\":\"%s\",\"object\":%s}\n", type, json);
}

static int compare_reported_object(const char *key, const char *json, void *context) {
        ObjectComparison *comparison = context;
        const ReportedObject *before = find_reported_object(comparison->before, key);
        ReportedObjects *now = &comparison->now;
        ReportedObject object = { strdup(key), strdup(json) };

        if (!object.key || !object.json || !ARRAY_RESERVE(now->items, now->n, 1)) {
                free(object.key);
                free(object.json);
                return -ENOMEM;
        }
        now->items[now->n++] = object;
        if (!before || !streq(before->json, json))
                print_object_watch_event(comparison->lines, before ? "MODIFIED" : "ADDED", json);
        return 0;
}

/* The watch events of all changes since the last call, a line each. */
static int format_object_changes(ObjectWatch *watch, char **ret) {
        cleanup_free char *text = NULL;
        size_t length;
        ObjectComparison comparison = { .before = &watch->reported,
                                        .lines = open_memstream(&text, &length) };
        int r;

        if (!comparison.lines)
                return -ENOMEM;
        r = watch->each(watch->server, compare_reported_object, &comparison);
        for (size_t i = 0; i < watch->reported.n && r >= 0; i++)
                if (!find_reported_object(&comparison.now, watch->reported.items[i].key))
                        print_object_watch_event(comparison.lines, "DELETED",
                                                 watch->reported.items[i].json);
        if (!memstream_finish(comparison.lines, &text) || r < 0) {
                reported_objects_done(&comparison.now);
                return r < 0 ? r : -ENOMEM;
        }
        reported_objects_done(&watch->reported);
        watch->reported = comparison.now;
        *ret = TAKE_PTR(text);
        return 0;
}

static int next_object_watch_text(void *userdata) {
        ObjectWatch *watch = userdata;
        cleanup_free char *lines = NULL;
        int r;

        if (!watch->is_due)
                return watch_bookmark_format(&watch->bookmark, &watch->text);
        watch->is_due = false;
        r = format_object_changes(watch, &lines);
        if (r < 0)
                return r;
        return lines[0] ? stream_text_format(&watch->text, "", lines, "")
                        : watch_bookmark_format(&watch->bookmark, &watch->text);
}

static ssize_t read_object_watch(void *source, char *buffer, size_t size) {
        ObjectWatch *watch = source;

        return stream_text_read(&watch->text, next_object_watch_text, watch, buffer, size);
}

static void object_watch_free(void *source) {
        ObjectWatch *watch = source;

        reported_objects_done(&watch->reported);
        stream_text_done(&watch->text);
        free(watch);
}

static const ResponseStreamKind object_watch_kind = { "application/json", true, read_object_watch,
                                                      object_watch_free };

enum MHD_Result reply_object_watch(HttpServer *server, struct MHD_Connection *http,
                                   HttpObjects kind, http_objects_t each) {
        ObjectWatch *watch = calloc(1, sizeof(*watch));

        if (!watch)
                return MHD_NO;
        watch->server = server;
        watch->kind = kind;
        watch->each = each;
        watch->is_due = true;
        watch->bookmark.is_due = http_query_flag(http, "bookmark");
        return response_stream_start(http_streams_of(server), http, &object_watch_kind, watch,
                                     NULL);
}

void http_server_notify_objects(HttpServer *server, HttpObjects kind) {
        const ResponseStreams *streams = http_streams_of(server);
        ResponseStream *stream = NULL;

        while ((stream = response_stream_next(streams, &object_watch_kind, stream))) {
                ObjectWatch *watch = response_stream_source(stream);

                if (watch->kind != kind)
                        continue;
                watch->is_due = true;
                response_stream_wake(stream);
        }
}
