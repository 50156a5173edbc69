/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/serve/serve-private.h"

#include "common/cleanup.h"

/* /events, once or as a watch. Both go by the events' numbers, one event at a time and as fast as
 * the client reads; a watch sleeps when it has seen all. It has no queue: a client that is slow
 * sees the latest count of an event instead of each. */

typedef struct EventWalk {
        Serve *serve;
        uint64_t number; /* of the last event that was told */
        bool is_begun;
        bool is_ended;
        size_t n; /* that were told */
        Text text;
} EventWalk;

/* 1 with the next event, 0 when there is none, -errno. */
static int next(EventWalk *walk, char **ret_json) {
        int r = walk->serve->handlers->next_event(walk->serve->userdata, walk->number,
                                                  &walk->number, ret_json);

        walk->n += r > 0;
        return r;
}

static int next_of_list(void *userdata) {
        EventWalk *walk = userdata;
        cleanup_free char *json = NULL;
        int r;

        if (walk->is_ended)
                return -ENODATA;
        if (!walk->is_begun) {
                walk->is_begun = true;
                return text_say(&walk->text, "{\"kind\":\"EventList\",\"apiVersion\":\"v1\",", "",
                                "\"metadata\":{},\"items\":[");
        }
        r = next(walk, &json);
        if (r < 0)
                return r;
        if (r > 0)
                return text_say(&walk->text, walk->n > 1 ? "," : "", json, "");
        walk->is_ended = true;
        return text_say(&walk->text, "", "]}", "\n");
}

static int next_of_watch(void *userdata) {
        EventWalk *walk = userdata;
        cleanup_free char *json = NULL;
        int r = next(walk, &json);

        return r <= 0 ? r : text_say(&walk->text, "{\"type\":\"ADDED\",\"object\":", json, "}\n");
}

static ssize_t list_read(void *source, char *buffer, size_t size) {
        EventWalk *walk = source;

        return text_read(&walk->text, next_of_list, walk, buffer, size);
}

static ssize_t watch_read(void *source, char *buffer, size_t size) {
        EventWalk *walk = source;

        return text_read(&walk->text, next_of_watch, walk, buffer, size);
}

static void walk_free(void *source) {
        EventWalk *walk = source;

        text_done(&walk->text);
        free(walk);
}

static const StreamKind list_kind = { "application/json", false, list_read, walk_free };
static const StreamKind watch_kind = { "application/json", true, watch_read, walk_free };

enum MHD_Result serve_events(Serve *serve, struct MHD_Connection *http, const char *rest) {
        EventWalk *walk = calloc(1, sizeof(*walk));

        if (!walk)
                return MHD_NO;
        walk->serve = serve;
        return stream_answer(serve, http, serve_flag(http, "watch") ? &watch_kind : &list_kind,
                             walk, NULL);
}

void serve_event_came(Serve *serve) {
        for (Stream *stream = serve->streams; stream; stream = stream->next)
                if (stream->kind == &watch_kind)
                        stream_wake(stream);
}
