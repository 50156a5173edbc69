/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the agent's watch become events of a client's watch. The first byte selects the
 * resource, the second one the client's request. Each event is one line of JSON, and the first
 * event about an object that the client does not have yet reports that it was added. */

#include "tests/fuzz/fuzz.h"

#include "agent/node-api/kubernetes/client-watch.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"

#include <errno.h>

enum {
        FROM_START = 1,
        AS_TABLE = 2,
        WITH_SELECTOR = 4,
        WITH_BOOKMARKS = 8,
};

static void check_event(const char *line, size_t length, json_t *seen, bool follows) {
        cleanup_json json_t *event = json_loadb(line, length, 0, NULL);
        const char *type = json_string_value(json_object_get(event, "type"));
        json_t *object = json_object_get(event, "object");
        cleanup_free char *key = NULL;
        bool is_known;

        assert(type && json_is_object(object));
        if (!follows || streq(type, "BOOKMARK"))
                return;
        key = object_key(object);
        assert(key);
        is_known = json_object_get(seen, key);
        assert(is_known == !streq(type, "ADDED"));
        if (streq(type, "DELETED"))
                (void) json_object_del(seen, key);
        else
                (void) json_object_set_new(seen, key, json_true());
}

static void check_events(const char *text, json_t *seen, bool follows) {
        while (*text) {
                size_t length = strcspn(text, "\n");

                assert(text[length] == '\n');
                check_event(text, length, seen, follows);
                text += length + 1;
        }
}

static int take_line(ClientWatch *watch, const char *line, json_t *seen, bool follows) {
        cleanup_free char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        int r;

        assert(out);
        r = client_watch_take_line(watch, line, strlen(line), 0, out);
        assert(r == 0 || r == -EBADMSG || r == -ENOBUFS);
        assert(memstream_finish(out, &text));
        check_events(text, seen, follows);
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_with(client_watch_done) ClientWatch watch = { 0 };
        cleanup_json json_t *seen = json_object();
        cleanup_free char *text = NULL;
        ObjectVersions *versions;
        char *rest;
        int r = 0;

        if (size < 2)
                return 0;
        text = rest = strndup((const char *) data + 2, size - 2);
        versions = object_versions_new(100);
        assert(text && versions);
        watch.resource = &served_resources[data[0] % n_served_resources];
        watch.versions = versions;
        watch.since = data[1] & FROM_START ? 0 : 100;
        watch.form.table_version = data[1] & AS_TABLE ? "v1" : NULL;
        watch.has_end_of_list = watch.has_bookmarks = data[1] & WITH_BOOKMARKS;
        assert(label_terms_parse(data[1] & WITH_SELECTOR ? "app" : "", &watch.query.labels, NULL) >=
               0);
        assert(client_watch_start(&watch) >= 0);
        for (char *line; r >= 0 && (line = strsep(&rest, "\n"));)
                if (*line)
                        r = take_line(&watch, line, seen,
                                      watch.since == 0 && !watch.form.table_version);
        object_versions_free(versions);
        return 0;
}
