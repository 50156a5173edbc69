/* SPDX-License-Identifier: Apache-2.0 */

/* /configmaps, /secrets, /priorityclasses and /runtimeclasses: the objects of the manifests, as a
 * list, one at a time, or a watch. The values of Secrets are not included. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"
#include "agent/http/object-watch.h"
#include "agent/http/stream-text.h"

#include "common/cleanup.h"

typedef struct ObjectCursor {
        HttpServer *server;
        ObjectKind kind;
        char *key; /* of the object that was sent last; NULL: none yet */
        bool has_started;
        bool has_ended;
        StreamText text;
} ObjectCursor;

static int next_object_list_text(void *userdata) {
        ObjectCursor *cursor = userdata;
        cleanup_free char *json = NULL;
        bool is_first = !cursor->key;
        char *key, head[128];
        int r;

        if (cursor->has_ended)
                return -ENODATA;
        if (!cursor->has_started) {
                cursor->has_started = true;
                (void) snprintf(head, sizeof(head),
                                "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{},",
                                object_kind_names[cursor->kind],
                                object_kind_versions[cursor->kind]);
                return stream_text_format(&cursor->text, "", head, "\"items\":[");
        }
        r = http_handlers_of(cursor->server)
                    ->next_object(http_userdata_of(cursor->server), cursor->kind, cursor->key, &key,
                                  &json);
        if (r < 0)
                return r;
        if (r == 0) {
                cursor->has_ended = true;
                return stream_text_format(&cursor->text, "", "]}", "\n");
        }
        free(cursor->key);
        cursor->key = key;
        return stream_text_format(&cursor->text, is_first ? "" : ",", json, "");
}

static ssize_t read_object_list(void *source, char *buffer, size_t size) {
        ObjectCursor *cursor = source;

        return stream_text_read(&cursor->text, next_object_list_text, cursor, buffer, size);
}

static void object_cursor_free(void *source) {
        ObjectCursor *cursor = source;

        free(cursor->key);
        stream_text_done(&cursor->text);
        free(cursor);
}

static const ResponseStreamKind object_list_kind = { "application/json", false, read_object_list,
                                                     object_cursor_free };

/* ---- the watch ---- */

static int each_object(HttpServer *server, ObjectKind kind, http_each_object_t each,
                       void *context) {
        cleanup_free char *after = NULL;

        for (;;) {
                cleanup_free char *json = NULL;
                char *key;
                int r = http_handlers_of(server)->next_object(http_userdata_of(server), kind, after,
                                                              &key, &json);

                if (r <= 0)
                        return r;
                free(after);
                after = key;
                r = each(key, json, context);
                if (r < 0)
                        return r;
        }
}

static int each_config_map(HttpServer *server, http_each_object_t each, void *context) {
        return each_object(server, OBJECT_CONFIG_MAP, each, context);
}

static int each_secret(HttpServer *server, http_each_object_t each, void *context) {
        return each_object(server, OBJECT_SECRET, each, context);
}

static int each_priority_class(HttpServer *server, http_each_object_t each, void *context) {
        return each_object(server, OBJECT_PRIORITY_CLASS, each, context);
}

static int each_runtime_class(HttpServer *server, http_each_object_t each, void *context) {
        return each_object(server, OBJECT_RUNTIME_CLASS, each, context);
}

/* ---- replies ---- */

static enum MHD_Result reply_object_list(HttpServer *server, struct MHD_Connection *http,
                                         ObjectKind kind, http_objects_t each) {
        ObjectCursor *cursor;

        if (http_query_flag(http, "watch"))
                return reply_object_watch(server, http, HTTP_DATA_OBJECTS, each);
        cursor = calloc(1, sizeof(*cursor));
        if (!cursor)
                return MHD_NO;
        cursor->server = server;
        cursor->kind = kind;
        return response_stream_start(http_streams_of(server), http, &object_list_kind, cursor,
                                     NULL);
}

enum MHD_Result http_handle_get_config_maps(HttpServer *server, struct MHD_Connection *http,
                                            const char *rest) {
        return reply_object_list(server, http, OBJECT_CONFIG_MAP, each_config_map);
}

enum MHD_Result http_handle_get_secrets(HttpServer *server, struct MHD_Connection *http,
                                        const char *rest) {
        return reply_object_list(server, http, OBJECT_SECRET, each_secret);
}

enum MHD_Result http_handle_get_priority_classes(HttpServer *server, struct MHD_Connection *http,
                                                 const char *rest) {
        return reply_object_list(server, http, OBJECT_PRIORITY_CLASS, each_priority_class);
}

enum MHD_Result http_handle_get_runtime_classes(HttpServer *server, struct MHD_Connection *http,
                                                const char *rest) {
        return reply_object_list(server, http, OBJECT_RUNTIME_CLASS, each_runtime_class);
}
