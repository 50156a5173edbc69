/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/watch.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/words.h"
#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/json-text.h"

enum {
        EVENT_MAX = 16 * 1024 * 1024 /* one event of a watch */
};

typedef struct WatchStream {
        watch_object_t on_object;
        void *userdata;
        Buffer line; /* the incomplete last one of the data received so far */
        bool is_enough;
} WatchStream;

static void watch_stream_done(WatchStream *watch) {
        buffer_done(&watch->line);
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
        char *newline;
        int r;

        r = buffer_append(&watch->line, data, length, EVENT_MAX);
        while (r == 0 && (newline = memchr(watch->line.data, '\n', watch->line.length))) {
                size_t n = (size_t) (newline + 1 - watch->line.data);

                r = handle_watch_line(watch, watch->line.data, n);
                buffer_drop(&watch->line, n);
        }
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
