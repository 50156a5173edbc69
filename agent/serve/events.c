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

        char *text; /* what is being given out */
        size_t length, taken;
} EventWalk;

static int say(EventWalk *walk, const char *before, const char *json, const char *after) {
        int n;

        free(walk->text);
        walk->length = walk->taken = 0;
        n = asprintf(&walk->text, "%s%s%s", before, json, after);
        if (n < 0) {
                walk->text = NULL;
                return -ENOMEM;
        }
        walk->length = (size_t) n;
        return 1;
}

/* 1 with the next event, 0 when there is none, -errno. */
static int next(EventWalk *walk, char **ret_json) {
        int r = walk->serve->handlers->next_event(walk->serve->userdata, walk->number,
                                                  &walk->number, ret_json);

        walk->n += r > 0;
        return r;
}

static int next_of_list(EventWalk *walk) {
        cleanup_free char *json = NULL;
        int r;

        if (walk->is_ended)
                return -ENODATA;
        if (!walk->is_begun) {
                walk->is_begun = true;
                return say(walk, "{\"kind\":\"EventList\",\"apiVersion\":\"v1\",", "",
                           "\"metadata\":{},\"items\":[");
        }
        r = next(walk, &json);
        if (r < 0)
                return r;
        if (r > 0)
                return say(walk, walk->n > 1 ? "," : "", json, "");
        walk->is_ended = true;
        return say(walk, "", "]}", "\n");
}

static int next_of_watch(EventWalk *walk) {
        cleanup_free char *json = NULL;
        int r = next(walk, &json);

        return r <= 0 ? r : say(walk, "{\"type\":\"ADDED\",\"object\":", json, "}\n");
}

/* Fills the buffer; what 'next' gives is what a StreamKind's read() gives. */
static ssize_t fill(EventWalk *walk, int (*next_text)(EventWalk *walk), char *buffer, size_t size) {
        size_t n = 0;

        while (n < size) {
                size_t part = MIN(size - n, walk->length - walk->taken);
                int r;

                if (part > 0) {
                        memcpy(buffer + n, walk->text + walk->taken, part);
                        walk->taken += part;
                        n += part;
                        continue;
                }
                r = next_text(walk);
                if (r <= 0)
                        return n > 0 ? (ssize_t) n : r;
        }
        return (ssize_t) n;
}

static ssize_t list_read(void *source, char *buffer, size_t size) {
        return fill(source, next_of_list, buffer, size);
}

static ssize_t watch_read(void *source, char *buffer, size_t size) {
        return fill(source, next_of_watch, buffer, size);
}

static void walk_free(void *source) {
        EventWalk *walk = source;

        free(walk->text);
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
