/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/watch.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/line-buffer.h"

enum {
        EVENT_MAX = 16 * 1024 * 1024 /* one event of a watch */
};

typedef struct WatchStream {
        watch_object_t on_object;
        void *userdata;
        LineBuffer lines;
        bool is_enough;
} WatchStream;

static void watch_stream_done(WatchStream *watch) {
        line_buffer_done(&watch->lines);
}

static int handle_watch_line(const WatchStream *watch, const char *line, size_t length) {
        cleanup_json json_t *event = json_loadb(line, length, 0, NULL);
        json_t *object = json_object_get(event, "object");
        const char *type = strna(json_text(event, "type"));

        if (!object && !streq(type, "BOOKMARK"))
                return -EBADMSG;
        return watch->on_object(type, object, watch->userdata);
}

static int on_watch_stream_data(const char *data, size_t length, void *userdata) {
        WatchStream *watch = userdata;
        int r = line_buffer_push(&watch->lines, data, length, EVENT_MAX);
        const char *line;
        size_t n;

        while (r == 0 && line_buffer_take(&watch->lines, &line, &n))
                r = handle_watch_line(watch, line, n);
        watch->is_enough = r > 0;
        return r;
}

int watch_objects(const char *socket, const char *path, watch_object_t on_object, void *userdata,
                  Error *reterr) {
        cleanup_with(watch_stream_done)
                WatchStream watch = { .on_object = on_object, .userdata = userdata };
        int r = client_stream(socket, path, on_watch_stream_data, &watch, reterr);

        return r >= 0 && !watch.is_enough
                       ? error_setf(reterr, EIO, "the agent closed the connection")
                       : r;
}

typedef struct PodsWatch {
        json_t *pods;   /* by UID: those that may still be reported */
        json_t *unseen; /* those that the watch has not reported yet */
        watch_object_t on_pod;
        void *userdata;
} PodsWatch;

static const char *uid_of_pod(const json_t *pod) {
        return strna(json_text(pod, "metadata", "uid"));
}

static int report_unseen_pods(const PodsWatch *watch) {
        const char *uid;
        json_t *pod;
        int r = 0;

        json_object_foreach(watch->unseen, uid, pod) {
                r = watch->on_pod("DELETED", pod, watch->userdata);
                if (r != 0)
                        break;
        }
        return r;
}

static int on_pod_of_list(const char *type, json_t *pod, void *userdata) {
        const PodsWatch *watch = userdata;

        if (streq(type, "BOOKMARK"))
                return report_unseen_pods(watch);
        if (!json_object_get(watch->pods, uid_of_pod(pod)))
                return 0;
        (void) json_object_del(watch->unseen, uid_of_pod(pod));
        return watch->on_pod(type, pod, watch->userdata);
}

int watch_pods(const char *socket, const json_t *pods, watch_object_t on_pod, void *userdata,
               Error *reterr) {
        cleanup_json json_t *by_uid = json_object(), *unseen = NULL;
        PodsWatch watch = { .on_pod = on_pod, .userdata = userdata };
        json_t *pod;
        size_t i;

        json_array_foreach(pods, i, pod)
                if (json_object_set(by_uid, uid_of_pod(pod), pod) < 0)
                        return -ENOMEM;
        unseen = json_copy(by_uid);
        if (!by_uid || !unseen)
                return -ENOMEM;
        watch.pods = by_uid;
        watch.unseen = unseen;
        return watch_objects(socket, "/pods?watch=1&bookmark=1", on_pod_of_list, &watch, reterr);
}
