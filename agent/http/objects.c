/* SPDX-License-Identifier: Apache-2.0 */

/* /configmaps, /secrets, /priorityclasses and /runtimeclasses: the objects of the manifests, one at
 * a time. The values of Secrets are not included. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"
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

static enum MHD_Result reply_object_list(HttpServer *server, struct MHD_Connection *http,
                                         ObjectKind kind) {
        ObjectCursor *cursor = calloc(1, sizeof(*cursor));

        if (!cursor)
                return MHD_NO;
        cursor->server = server;
        cursor->kind = kind;
        return response_stream_start(http_streams_of(server), http, &object_list_kind, cursor,
                                     NULL);
}

enum MHD_Result http_handle_get_config_maps(HttpServer *server, struct MHD_Connection *http,
                                            const char *rest) {
        return reply_object_list(server, http, OBJECT_CONFIG_MAP);
}

enum MHD_Result http_handle_get_secrets(HttpServer *server, struct MHD_Connection *http,
                                        const char *rest) {
        return reply_object_list(server, http, OBJECT_SECRET);
}

enum MHD_Result http_handle_get_priority_classes(HttpServer *server, struct MHD_Connection *http,
                                                 const char *rest) {
        return reply_object_list(server, http, OBJECT_PRIORITY_CLASS);
}

enum MHD_Result http_handle_get_runtime_classes(HttpServer *server, struct MHD_Connection *http,
                                                const char *rest) {
        return reply_object_list(server, http, OBJECT_RUNTIME_CLASS);
}
