/* SPDX-License-Identifier: Apache-2.0 */

/* /events, as a list or a watch. Both follow the numbers of the events, one event at a time and as
 * fast as the client reads; a watch sleeps after the last event. Nothing is queued: a slow client
 * gets only the latest count of an event, and not each intermediate one. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"
#include "agent/http/stream-text.h"

#include "common/cleanup.h"

typedef struct EventCursor {
        HttpServer *server;
        uint64_t number; /* of the last event that was sent */
        bool has_started;
        bool has_ended;
        size_t n; /* number of events sent */
        WatchBookmark bookmark;
        StreamText text;
} EventCursor;

/* 1 with the next event, 0 if there is none, -errno. */
static int next_event_json(EventCursor *cursor, char **ret_json) {
        int r = http_handlers_of(cursor->server)
                        ->next_event(http_userdata_of(cursor->server), cursor->number,
                                     &cursor->number, ret_json);

        cursor->n += r > 0;
        return r;
}

static int next_event_list_text(void *userdata) {
        EventCursor *cursor = userdata;
        cleanup_free char *json = NULL;
        int r;

        if (cursor->has_ended)
                return -ENODATA;
        if (!cursor->has_started) {
                cursor->has_started = true;
                return stream_text_format(&cursor->text,
                                          "{\"kind\":\"EventList\",\"apiVersion\":\"v1\",", "",
                                          "\"metadata\":{},\"items\":[");
        }
        r = next_event_json(cursor, &json);
        if (r < 0)
                return r;
        if (r > 0)
                return stream_text_format(&cursor->text, cursor->n > 1 ? "," : "", json, "");
        cursor->has_ended = true;
        return stream_text_format(&cursor->text, "", "]}", "\n");
}

static int next_event_watch_text(void *userdata) {
        EventCursor *cursor = userdata;
        cleanup_free char *json = NULL;
        int r = next_event_json(cursor, &json);

        if (r == 0)
                return watch_bookmark_format(&cursor->bookmark, &cursor->text);
        return r < 0 ? r
                     : stream_text_format(&cursor->text, "{\"type\":\"ADDED\",\"object\":", json,
                                          "}\n");
}

static ssize_t read_event_list(void *source, char *buffer, size_t size) {
        EventCursor *cursor = source;

        return stream_text_read(&cursor->text, next_event_list_text, cursor, buffer, size);
}

static ssize_t read_event_watch(void *source, char *buffer, size_t size) {
        EventCursor *cursor = source;

        return stream_text_read(&cursor->text, next_event_watch_text, cursor, buffer, size);
}

static void event_cursor_free(void *source) {
        EventCursor *cursor = source;

        stream_text_done(&cursor->text);
        free(cursor);
}

static const ResponseStreamKind event_list_kind = { "application/json", false, read_event_list,
                                                    event_cursor_free };
static const ResponseStreamKind event_watch_kind = { "application/json", true, read_event_watch,
                                                     event_cursor_free };

enum MHD_Result http_handle_get_events(HttpServer *server, struct MHD_Connection *http,
                                       const char *rest) {
        EventCursor *cursor = calloc(1, sizeof(*cursor));

        if (!cursor)
                return MHD_NO;
        cursor->server = server;
        cursor->bookmark.is_due = http_query_flag(http, "bookmark");
        return response_stream_start(http_streams_of(server), http,
                                     http_query_flag(http, "watch") ? &event_watch_kind
                                                                    : &event_list_kind,
                                     cursor, NULL);
}

void http_server_notify_event(HttpServer *server) {
        ResponseStream *stream = NULL;

        while ((stream = response_stream_next(http_streams_of(server), &event_watch_kind, stream)))
                response_stream_wake(stream);
}
