/* SPDX-License-Identifier: Apache-2.0 */

/* /pods, as a list or a watch. Both walk the agent's pods by key, one at a time and as fast as the
 * client reads; a watch continues with the changes. A change of a pod that has not been reached yet
 * is not queued, because its state will be sent then. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"
#include "agent/http/stream-text.h"

#include "common/cleanup.h"

/* ---- the walk ---- */

typedef struct PodCursor {
        HttpServer *server;
        char *key; /* of the pod that was sent last; NULL: none yet */
        bool is_over;
        StreamText text;
} PodCursor;

static void pod_cursor_done(PodCursor *cursor) {
        free(cursor->key);
        stream_text_done(&cursor->text);
}

/* 1 with the next pod as JSON, 0 if there is none, -errno. */
static int next_pod_json(PodCursor *cursor, char **ret_json) {
        char *key;
        int r;

        r = http_handlers_of(cursor->server)
                    ->next_pod(http_userdata_of(cursor->server), cursor->key, &key, ret_json);
        if (r <= 0)
                return r;
        free(cursor->key);
        cursor->key = key;
        return 1;
}

/* ---- the list ---- */

typedef struct PodListStream {
        PodCursor cursor;
        bool has_started;
        bool has_ended;
} PodListStream;

static int next_pod_list_text(void *userdata) {
        PodListStream *list = userdata;
        PodCursor *cursor = &list->cursor;
        cleanup_free char *json = NULL;
        bool is_first = cursor->key == NULL;
        int r;

        if (list->has_ended)
                return -ENODATA;
        if (!list->has_started) {
                list->has_started = true;
                return stream_text_format(&cursor->text,
                                          "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",", "",
                                          "\"metadata\":{},\"items\":[");
        }
        r = next_pod_json(cursor, &json);
        if (r < 0)
                return r;
        if (r > 0)
                return stream_text_format(&cursor->text, is_first ? "" : ",", json, "");
        list->has_ended = true;
        return stream_text_format(&cursor->text, "", "]}", "\n");
}

static ssize_t read_pod_list(void *source, char *buffer, size_t size) {
        PodListStream *list = source;

        return stream_text_read(&list->cursor.text, next_pod_list_text, list, buffer, size);
}

static void pod_list_free(void *source) {
        PodListStream *list = source;

        pod_cursor_done(&list->cursor);
        free(list);
}

static const ResponseStreamKind pod_list_kind = { "application/json", false, read_pod_list,
                                                  pod_list_free };

static enum MHD_Result reply_pod_list(HttpServer *server, struct MHD_Connection *http) {
        PodListStream *list = calloc(1, sizeof(*list));

        if (!list)
                return MHD_NO;
        list->cursor.server = server;
        return response_stream_start(http_streams_of(server), http, &pod_list_kind, list, NULL);
}

/* ---- the watch ---- */

/* One line, shared by all watches that have not sent it yet. */
typedef struct PodWatchEvent {
        unsigned n_refs;
        size_t length;
        char line[];
} PodWatchEvent;

typedef struct QueuedPodWatchEvent {
        PodWatchEvent *event;
        struct QueuedPodWatchEvent *next;
} QueuedPodWatchEvent;

typedef struct PodWatch {
        PodCursor cursor;
        QueuedPodWatchEvent *first, *last;
        size_t queued_bytes;
        WatchBookmark bookmark;
} PodWatch;

enum {
        WATCH_QUEUE_BYTES_MAX = 1024 * 1024,
};

static const char *const watch_event_type_names[N_HTTP_WATCH_EVENT_TYPES] = {
        [HTTP_WATCH_ADDED] = "ADDED",
        [HTTP_WATCH_MODIFIED] = "MODIFIED",
        [HTTP_WATCH_DELETED] = "DELETED",
};

static PodWatchEvent *pod_watch_event_new(HttpWatchEventType change, const char *json) {
        static const char format[] = "{\"type\":\"%s\",\"object\":%s}\n";
        int length = snprintf(NULL, 0, format, watch_event_type_names[change], json);
        PodWatchEvent *event;

        if (length < 0)
                return NULL;
        event = malloc(sizeof(*event) + (size_t) length + 1);
        if (!event)
                return NULL;
        event->n_refs = 1;
        event->length = (size_t) length;
        (void) snprintf(event->line, (size_t) length + 1, format, watch_event_type_names[change],
                        json);
        return event;
}

static void pod_watch_event_unref(PodWatchEvent *event) {
        if (event && --event->n_refs == 0)
                free(event);
}

static int pod_watch_queue_event(PodWatch *watch, PodWatchEvent *event) {
        QueuedPodWatchEvent *queued;

        if (watch->queued_bytes + event->length > WATCH_QUEUE_BYTES_MAX)
                return -ENOBUFS;
        queued = calloc(1, sizeof(*queued));
        if (!queued)
                return -ENOMEM;
        queued->event = event;
        event->n_refs++;
        if (watch->last)
                watch->last->next = queued;
        else
                watch->first = queued;
        watch->last = queued;
        watch->queued_bytes += event->length;
        return 0;
}

static PodWatchEvent *pod_watch_dequeue_event(PodWatch *watch) {
        QueuedPodWatchEvent *queued = watch->first;
        PodWatchEvent *event;

        if (!queued)
                return NULL;
        event = queued->event;
        watch->first = queued->next;
        if (!watch->first)
                watch->last = NULL;
        watch->queued_bytes -= event->length;
        free(queued);
        return event;
}

static int next_pod_watch_text(void *userdata) {
        PodWatch *watch = userdata;
        cleanup_free char *json = NULL;
        PodWatchEvent *event;
        int r;

        if (!watch->cursor.is_over) {
                r = next_pod_json(&watch->cursor, &json);
                if (r < 0)
                        return r;
                if (r > 0)
                        return stream_text_format(&watch->cursor.text,
                                                  "{\"type\":\"ADDED\",\"object\":", json, "}\n");
                watch->cursor.is_over = true;
        }
        r = watch_bookmark_format(&watch->bookmark, &watch->cursor.text);
        if (r != 0)
                return r;
        event = pod_watch_dequeue_event(watch);
        if (!event)
                return 0;
        r = stream_text_format(&watch->cursor.text, "", event->line, "");
        pod_watch_event_unref(event);
        return r;
}

static ssize_t read_pod_watch(void *source, char *buffer, size_t size) {
        PodWatch *watch = source;

        return stream_text_read(&watch->cursor.text, next_pod_watch_text, watch, buffer, size);
}

static void http_pod_watch_free(void *source) {
        PodWatch *watch = source;

        for (PodWatchEvent *event = pod_watch_dequeue_event(watch); event;
             event = pod_watch_dequeue_event(watch))
                pod_watch_event_unref(event);
        pod_cursor_done(&watch->cursor);
        free(watch);
}

static const ResponseStreamKind pod_watch_kind = { "application/json", true, read_pod_watch,
                                                   http_pod_watch_free };

static enum MHD_Result reply_pod_watch(HttpServer *server, struct MHD_Connection *http) {
        PodWatch *watch = calloc(1, sizeof(*watch));

        if (!watch)
                return MHD_NO;
        watch->cursor.server = server;
        watch->bookmark.is_due = http_query_flag(http, "bookmark");
        return response_stream_start(http_streams_of(server), http, &pod_watch_kind, watch, NULL);
}

enum MHD_Result http_handle_get_pods(HttpServer *server, struct MHD_Connection *http,
                                     const char *rest) {
        return http_query_flag(http, "watch") ? reply_pod_watch(server, http)
                                              : reply_pod_list(server, http);
}

bool http_server_has_pod_watchers(HttpServer *server) {
        return response_stream_next(http_streams_of(server), &pod_watch_kind, NULL) != NULL;
}

/* Whether the watch has already sent the pod. */
static bool is_past_cursor(const PodWatch *watch, const char *key) {
        return watch->cursor.is_over || (watch->cursor.key && strcmp(key, watch->cursor.key) <= 0);
}

void http_server_notify_pod(HttpServer *server, HttpWatchEventType change, const char *key,
                            const char *json) {
        ResponseStream *stream = NULL;
        PodWatchEvent *event;

        if (!http_server_has_pod_watchers(server))
                return;
        event = pod_watch_event_new(change, json);
        while ((stream = response_stream_next(http_streams_of(server), &pod_watch_kind, stream))) {
                PodWatch *watch = response_stream_source(stream);

                if (!is_past_cursor(watch, key))
                        continue;
                /* A watch that has missed a change must not continue as if it were complete. */
                if (!event || pod_watch_queue_event(watch, event) < 0)
                        response_stream_abort(stream);
                else
                        response_stream_wake(stream);
        }
        pod_watch_event_unref(event);
}
