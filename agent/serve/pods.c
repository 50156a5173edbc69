/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/serve/serve-private.h"

#include "common/cleanup.h"

/* /pods, once or as a watch. Both walk the agent's pods by key, one at a time and only as fast as
 * the client reads; a watch then goes on with the changes. A change of a pod that the walk has not
 * come to yet needs no telling: the walk will. */

/* One pod at a time */

typedef struct Walk {
        Serve *serve;
        char *key; /* of the last pod that was told, NULL: none yet */
        bool is_over;
        Text text;
} Walk;

static void walk_done(Walk *walk) {
        free(walk->key);
        text_done(&walk->text);
}

/* 1 with the next pod as JSON, 0 when there is none, -errno. */
static int walk_next(Walk *walk, char **ret_json) {
        char *key;
        int r;

        r = walk->serve->handlers->next_pod(walk->serve->userdata, walk->key, &key, ret_json);
        if (r <= 0)
                return r;
        free(walk->key);
        walk->key = key;
        return 1;
}

/* The list */

typedef struct PodList {
        Walk walk;
        bool is_begun;
        bool is_ended;
} PodList;

static int list_next(void *userdata) {
        PodList *list = userdata;
        Walk *walk = &list->walk;
        cleanup_free char *json = NULL;
        bool is_first = walk->key == NULL;
        int r;

        if (list->is_ended)
                return -ENODATA;
        if (!list->is_begun) {
                list->is_begun = true;
                return text_say(&walk->text, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",", "",
                                "\"metadata\":{},\"items\":[");
        }
        r = walk_next(walk, &json);
        if (r < 0)
                return r;
        if (r > 0)
                return text_say(&walk->text, is_first ? "" : ",", json, "");
        list->is_ended = true;
        return text_say(&walk->text, "", "]}", "\n");
}

static ssize_t list_read(void *source, char *buffer, size_t size) {
        PodList *list = source;

        return text_read(&list->walk.text, list_next, list, buffer, size);
}

static void list_free(void *source) {
        PodList *list = source;

        walk_done(&list->walk);
        free(list);
}

static const StreamKind list_kind = { "application/json", false, list_read, list_free };

static enum MHD_Result answer_list(Serve *serve, struct MHD_Connection *http) {
        PodList *list = calloc(1, sizeof(*list));

        if (!list)
                return MHD_NO;
        list->walk.serve = serve;
        return stream_answer(serve, http, &list_kind, list, NULL);
}

/* The watch */

/* One line, shared by all watchers that have not read it. */
typedef struct Event {
        unsigned n_refs;
        size_t length;
        char line[];
} Event;

typedef struct QueuedEvent {
        Event *event;
        struct QueuedEvent *next;
} QueuedEvent;

typedef struct Watch {
        Walk walk;
        QueuedEvent *first, *last;
        size_t queued_bytes;
} Watch;

static const char *const change_names[N_SERVE_CHANGES] = {
        [SERVE_ADDED] = "ADDED",
        [SERVE_MODIFIED] = "MODIFIED",
        [SERVE_DELETED] = "DELETED",
};

static Event *event_new(ServeChange change, const char *json) {
        static const char format[] = "{\"type\":\"%s\",\"object\":%s}\n";
        int length = snprintf(NULL, 0, format, change_names[change], json);
        Event *event;

        if (length < 0)
                return NULL;
        event = malloc(sizeof(*event) + (size_t) length + 1);
        if (!event)
                return NULL;
        event->n_refs = 1;
        event->length = (size_t) length;
        (void) snprintf(event->line, (size_t) length + 1, format, change_names[change], json);
        return event;
}

static void event_unref(Event *event) {
        if (event && --event->n_refs == 0)
                free(event);
}

static int watch_queue(Watch *watch, Event *event) {
        QueuedEvent *queued;

        if (watch->queued_bytes + event->length > WATCH_QUEUE_MAX)
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

static Event *watch_dequeue(Watch *watch) {
        QueuedEvent *queued = watch->first;
        Event *event;

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

static int watch_next(void *userdata) {
        Watch *watch = userdata;
        cleanup_free char *json = NULL;
        Event *event;
        int r;

        if (!watch->walk.is_over) {
                r = walk_next(&watch->walk, &json);
                if (r < 0)
                        return r;
                if (r > 0)
                        return text_say(&watch->walk.text, "{\"type\":\"ADDED\",\"object\":", json,
                                        "}\n");
                watch->walk.is_over = true;
        }
        event = watch_dequeue(watch);
        if (!event)
                return 0;
        r = text_say(&watch->walk.text, "", event->line, "");
        event_unref(event);
        return r;
}

static ssize_t watch_read(void *source, char *buffer, size_t size) {
        Watch *watch = source;

        return text_read(&watch->walk.text, watch_next, watch, buffer, size);
}

static void watch_free(void *source) {
        Watch *watch = source;

        watch->walk.serve->n_watchers--;
        for (Event *event = watch_dequeue(watch); event; event = watch_dequeue(watch))
                event_unref(event);
        walk_done(&watch->walk);
        free(watch);
}

static const StreamKind watch_kind = { "application/json", true, watch_read, watch_free };

static enum MHD_Result answer_watch(Serve *serve, struct MHD_Connection *http) {
        Watch *watch = calloc(1, sizeof(*watch));

        if (!watch)
                return MHD_NO;
        watch->walk.serve = serve;
        serve->n_watchers++;
        return stream_answer(serve, http, &watch_kind, watch, NULL);
}

enum MHD_Result serve_pods(Serve *serve, struct MHD_Connection *http, const char *rest) {
        return serve_flag(http, "watch") ? answer_watch(serve, http) : answer_list(serve, http);
}

bool serve_has_watchers(const Serve *serve) {
        return serve->n_watchers > 0;
}

/* True where the walk will not come to the pod any more. */
static bool has_passed(const Watch *watch, const char *key) {
        return watch->walk.is_over || (watch->walk.key && strcmp(key, watch->walk.key) <= 0);
}

void serve_pod_changed(Serve *serve, ServeChange change, const char *key, const char *json) {
        Event *event;

        if (!serve_has_watchers(serve))
                return;
        event = event_new(change, json);
        for (Stream *stream = serve->streams; stream; stream = stream->next) {
                Watch *watch = stream->source;

                if (stream->kind != &watch_kind || !has_passed(watch, key))
                        continue;
                /* Who has missed a change must not go on as if it had seen all. */
                if (!event || watch_queue(watch, event) < 0)
                        stream_drop(stream);
                else
                        stream_wake(stream);
        }
        event_unref(event);
}
