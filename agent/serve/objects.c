/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/serve/serve-private.h"

#include "common/cleanup.h"

/* /configmaps, /secrets, /priorityclasses and /runtimeclasses: the objects of the manifests, one at
 * a time. The values of Secrets never come here. */

typedef struct ObjectWalk {
        Serve *serve;
        ObjectKind kind;
        char *key; /* of the object that was told last, NULL: none yet */
        bool is_begun;
        bool is_ended;
        Text text;
} ObjectWalk;

static int next(void *userdata) {
        ObjectWalk *walk = userdata;
        cleanup_free char *json = NULL;
        bool is_first = !walk->key;
        char *key, head[128];
        int r;

        if (walk->is_ended)
                return -ENODATA;
        if (!walk->is_begun) {
                walk->is_begun = true;
                (void) snprintf(head, sizeof(head),
                                "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{},",
                                object_kind_names[walk->kind], object_kind_versions[walk->kind]);
                return text_say(&walk->text, "", head, "\"items\":[");
        }
        r = walk->serve->handlers->next_object(walk->serve->userdata, walk->kind, walk->key, &key,
                                               &json);
        if (r < 0)
                return r;
        if (r == 0) {
                walk->is_ended = true;
                return text_say(&walk->text, "", "]}", "\n");
        }
        free(walk->key);
        walk->key = key;
        return text_say(&walk->text, is_first ? "" : ",", json, "");
}

static ssize_t walk_read(void *source, char *buffer, size_t size) {
        ObjectWalk *walk = source;

        return text_read(&walk->text, next, walk, buffer, size);
}

static void walk_free(void *source) {
        ObjectWalk *walk = source;

        free(walk->key);
        text_done(&walk->text);
        free(walk);
}

static const StreamKind list_kind = { "application/json", false, walk_read, walk_free };

static enum MHD_Result answer(Serve *serve, struct MHD_Connection *http, ObjectKind kind) {
        ObjectWalk *walk = calloc(1, sizeof(*walk));

        if (!walk)
                return MHD_NO;
        walk->serve = serve;
        walk->kind = kind;
        return stream_answer(serve, http, &list_kind, walk, NULL);
}

enum MHD_Result serve_config_maps(Serve *serve, struct MHD_Connection *http, const char *rest) {
        return answer(serve, http, OBJECT_CONFIG_MAP);
}

enum MHD_Result serve_secrets(Serve *serve, struct MHD_Connection *http, const char *rest) {
        return answer(serve, http, OBJECT_SECRET);
}

enum MHD_Result serve_priority_classes(Serve *serve, struct MHD_Connection *http,
                                       const char *rest) {
        return answer(serve, http, OBJECT_PRIORITY_CLASS);
}

enum MHD_Result serve_runtime_classes(Serve *serve, struct MHD_Connection *http, const char *rest) {
        return answer(serve, http, OBJECT_RUNTIME_CLASS);
}
