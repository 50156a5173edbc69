/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/serve/serve-private.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <stdlib.h>

/* GET /daemonsets, once or as a watch, /revisions, /node;
 * POST /daemonsets/<namespace>/<name>/<verb>?revision=<n>.
 *
 * Nothing is queued for a watch: when it has told all, it compares what the sets are now with what
 * it told last. A client that is slow sees the latest state of a set instead of each. */

/* ---- the list ---- */

static int print_set(const char *key, const char *json, void *context) {
        FILE *out = context;

        fprintf(out, "%s%s", ftell(out) > 0 ? "," : "", json);
        return 0;
}

static enum MHD_Result answer_list(Serve *serve, struct MHD_Connection *http) {
        cleanup_free char *items = NULL;
        char *text;
        size_t length;
        FILE *out = open_memstream(&items, &length);
        int r;

        if (!out)
                return MHD_NO;
        r = serve->handlers->each_daemonset(serve->userdata, print_set, out);
        if (!memstream_finish(out, &items) || r < 0 ||
            asprintf(&text,
                     "{\"kind\":\"DaemonSetList\",\"apiVersion\":\"apps/v1\",\"metadata\":{},"
                     "\"items\":[%s]}\n",
                     items) < 0)
                return MHD_NO;
        return serve_answer_json_take(http, text);
}

/* ---- the watch ---- */

typedef struct ToldSet {
        char *key;
        char *json;
} ToldSet;

typedef LIST_OF(ToldSet) ToldSets;

typedef struct SetWatch {
        Serve *serve;
        ToldSets told;
        bool is_due; /* what the sets are was not looked at since it may have changed */
        Text text;
} SetWatch;

static void told_done(ToldSets *told) {
        for (size_t i = 0; i < told->n; i++) {
                free(told->items[i].key);
                free(told->items[i].json);
        }
        free(told->items);
        *told = (ToldSets){ 0 };
}

/* What has been told, what there is now, and the lines that are between them. */
typedef struct Comparison {
        const ToldSets *before;
        ToldSets now;
        FILE *lines;
} Comparison;

static const ToldSet *find_told(const ToldSets *told, const char *key) {
        for (size_t i = 0; i < told->n; i++)
                if (streq(told->items[i].key, key))
                        return &told->items[i];
        return NULL;
}

static void print_line(FILE *out, const char *type, const char *json) {
        fprintf(out, "{\"type\":\"%s\",\"object\":%s}\n", type, json);
}

static int compare(const char *key, const char *json, void *context) {
        Comparison *comparison = context;
        const ToldSet *before = find_told(comparison->before, key);
        ToldSets *now = &comparison->now;
        ToldSet *longer = reallocarray(now->items, now->n + 1, sizeof(*longer));
        ToldSet set = { strdup(key), strdup(json) };

        if (longer)
                now->items = longer;
        if (!longer || !set.key || !set.json) {
                free(set.key);
                free(set.json);
                return -ENOMEM;
        }
        longer[now->n++] = set;
        if (!before || !streq(before->json, json))
                print_line(comparison->lines, before ? "MODIFIED" : "ADDED", json);
        return 0;
}

/* The lines of all that is other than it was told. */
static int look(SetWatch *watch, char **ret) {
        cleanup_free char *text = NULL;
        size_t length;
        Comparison comparison = { .before = &watch->told, .lines = open_memstream(&text, &length) };
        int r;

        if (!comparison.lines)
                return -ENOMEM;
        r = watch->serve->handlers->each_daemonset(watch->serve->userdata, compare, &comparison);
        for (size_t i = 0; i < watch->told.n && r >= 0; i++)
                if (!find_told(&comparison.now, watch->told.items[i].key))
                        print_line(comparison.lines, "DELETED", watch->told.items[i].json);
        if (!memstream_finish(comparison.lines, &text) || r < 0) {
                told_done(&comparison.now);
                return r < 0 ? r : -ENOMEM;
        }
        told_done(&watch->told);
        watch->told = comparison.now;
        *ret = TAKE_PTR(text);
        return 0;
}

static int watch_next(void *userdata) {
        SetWatch *watch = userdata;
        cleanup_free char *lines = NULL;
        int r;

        if (!watch->is_due)
                return 0;
        watch->is_due = false;
        r = look(watch, &lines);
        return r < 0 || !lines[0] ? r : text_say(&watch->text, "", lines, "");
}

static ssize_t watch_read(void *source, char *buffer, size_t size) {
        SetWatch *watch = source;

        return text_read(&watch->text, watch_next, watch, buffer, size);
}

static void watch_free(void *source) {
        SetWatch *watch = source;

        told_done(&watch->told);
        text_done(&watch->text);
        free(watch);
}

static const StreamKind watch_kind = { "application/json", true, watch_read, watch_free };

enum MHD_Result serve_daemonsets(Serve *serve, struct MHD_Connection *http, const char *rest) {
        SetWatch *watch;

        if (!serve_flag(http, "watch"))
                return answer_list(serve, http);
        watch = calloc(1, sizeof(*watch));
        if (!watch)
                return MHD_NO;
        watch->serve = serve;
        watch->is_due = true;
        return stream_answer(serve, http, &watch_kind, watch, NULL);
}

void serve_daemonsets_changed(Serve *serve) {
        for (Stream *stream = serve->streams; stream; stream = stream->next) {
                SetWatch *watch = stream->source;

                if (stream->kind != &watch_kind)
                        continue;
                watch->is_due = true;
                stream_wake(stream);
        }
}

/* ---- the rest ---- */

enum MHD_Result serve_revisions(Serve *serve, struct MHD_Connection *http, const char *rest) {
        return serve_answer_json_take(http, serve->handlers->revisions(serve->userdata));
}

enum MHD_Result serve_node(Serve *serve, struct MHD_Connection *http, const char *rest) {
        return serve_answer_json_take(http, serve->handlers->node(serve->userdata));
}

static bool is_verb(const char *word) {
        static const char *const verbs[] = { "undo", "restart", "delete", "orphan" };

        for (size_t i = 0; i < N_ELEMENTS(verbs); i++)
                if (streq(verbs[i], word))
                        return true;
        return false;
}

static enum MHD_Result order(Serve *serve, struct MHD_Connection *http, const char *namespace,
                             const char *name, const char *verb) {
        cleanup_error Error error = ERROR_NULL;
        int64_t revision = 0;
        int r = serve_number(http, "revision", 0, &revision, &error);

        if (r >= 0)
                r = serve->handlers->order_daemonset(serve->userdata, namespace, name, verb,
                                                     revision, &error);
        if (r < 0)
                return serve_refuse(http, serve_status_of(r), "%s", error_message(&error, r));
        return serve_answer(http, MHD_HTTP_OK, "text/plain", r > 0 ? "unchanged\n" : "done\n");
}

enum MHD_Result serve_order(Serve *serve, struct MHD_Connection *http, const char *rest) {
        cleanup_free char *path = strdup(rest);
        char *words = path;
        const char *namespace = words ? strsep(&words, "/") : NULL;
        const char *name = words ? strsep(&words, "/") : NULL;
        const char *verb = words ? strsep(&words, "/") : NULL;
        enum MHD_Result result;

        if (!path)
                return MHD_NO;
        if (!serve_may_change(http, &result))
                return result;
        if (!verb || words || !is_verb(verb))
                return serve_refuse(http, MHD_HTTP_NOT_FOUND, "there is nothing here");
        return order(serve, http, namespace, name, verb);
}
