/* SPDX-License-Identifier: Apache-2.0 */

/* The versions of objects, and the events of a client's watch. */

#include "agent/node-api/kubernetes/client-watch.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "tests/test.h"

static json_t *make_pod(const char *name, const char *label, const char *phase) {
        return json_pack("{s:{s:s, s:s, s:s, s:{s:s}}, s:{s:s}}", "metadata", "name", name,
                         "namespace", "default", "uid", name, "labels", "app", label, "status",
                         "phase", phase);
}

static const ServedResource *pods_resource(void) {
        cleanup_with(resource_path_done) ResourcePath path = { 0 };

        EXPECT_EQ(resource_path_parse("/api/v1/pods", &path), 0);
        return find_served_resource(&path);
}

/* An object in the form in which served_objects_parse() and a watch return it. */
static json_t *make_served_pod(const char *name, const char *label, const char *phase) {
        json_t *pod = make_pod(name, label, phase);

        complete_served_object(pods_resource(), pod);
        return pod;
}

static uint64_t observe(ObjectVersions *versions, const char *name, const char *phase) {
        cleanup_json json_t *pod = make_served_pod(name, "web", phase);

        return object_versions_observe(versions, pod, NULL);
}

/* ---- versions ---- */

TEST(an_object_has_a_new_version_when_its_content_changes)
{
        ObjectVersions *versions = object_versions_new(100);
        cleanup_json json_t *pod = make_served_pod("a", "web", "Pending");
        uint64_t created;

        EXPECT_EQ(object_versions_observe(versions, pod, &created), 101);
        EXPECT_EQ(created, 101);
        EXPECT_STREQ(json_text(pod, "metadata", "resourceVersion"), "101");
        EXPECT_EQ(object_versions_observe(versions, pod, NULL), 101);
        EXPECT_EQ(observe(versions, "b", "Pending"), 102);
        EXPECT_EQ(observe(versions, "a", "Running"), 103);
        EXPECT_EQ(observe(versions, "a", "Running"), 103);
        EXPECT_EQ(object_versions_latest(versions), 103);
        object_versions_free(versions);
}

TEST(versions_before_the_start_and_in_the_future_are_unavailable)
{
        ObjectVersions *versions = object_versions_new(100);

        (void) observe(versions, "a", "Pending");
        EXPECT(!object_versions_reach(versions, 99));
        EXPECT(object_versions_reach(versions, 100));
        EXPECT(object_versions_reach(versions, 101));
        EXPECT(!object_versions_reach(versions, 102));
        object_versions_free(versions);
}

TEST(objects_missing_in_a_list_are_deleted)
{
        ObjectVersions *versions = object_versions_new(100);
        cleanup_json json_t *list = json_pack("[o]", make_served_pod("b", "web", "Running")),
                            *gone = NULL;

        (void) observe(versions, "a", "Running");
        (void) observe(versions, "b", "Running");
        object_versions_observe_all(versions, list);
        EXPECT_EQ(object_versions_latest(versions), 103);
        gone = object_versions_list_deleted(versions, 102);
        EXPECT_EQ(json_array_size(gone), 1);
        EXPECT_STREQ(json_text(json_array_get(gone, 0), "metadata", "name"), "a");
        EXPECT_STREQ(json_text(json_array_get(gone, 0), "metadata", "resourceVersion"), "103");
        json_decref(gone);
        gone = object_versions_list_deleted(versions, 103);
        EXPECT_EQ(json_array_size(gone), 0);
        EXPECT_EQ(observe(versions, "a", "Running"), 104); /* it was created again */
        object_versions_free(versions);
}

TEST(objects_created_and_deleted_while_a_client_was_away_are_not_reported)
{
        ObjectVersions *versions = object_versions_new(100);
        cleanup_json json_t *pod = make_served_pod("a", "web", "Running"), *gone = NULL;

        (void) object_versions_observe(versions, pod, NULL);
        EXPECT_EQ(object_versions_observe_deleted(versions, pod), 102);
        gone = object_versions_list_deleted(versions, 100);
        EXPECT_EQ(json_array_size(gone), 0);
        object_versions_free(versions);
}

TEST(the_oldest_versions_are_forgotten)
{
        ObjectVersions *versions = object_versions_new(100);
        char name[16];

        for (unsigned i = 0; i <= OBJECT_VERSIONS_MAX; i++) {
                (void) snprintf(name, sizeof(name), "pod-%u", i);
                (void) observe(versions, name, "Running");
        }
        EXPECT(!object_versions_reach(versions, 100));
        EXPECT(object_versions_reach(versions, 101));
        EXPECT_EQ(observe(versions, "pod-1", "Running"), 102);
        EXPECT_EQ(observe(versions, "pod-0", "Running"), 102 + OBJECT_VERSIONS_MAX);
        object_versions_free(versions);
}

/* ---- a watch ---- */

static void start_watch(ClientWatch *watch, ObjectVersions *versions, uint64_t since,
                        const char *labels) {
        watch->resource = pods_resource();
        watch->versions = versions;
        watch->since = since;
        EXPECT_EQ(label_terms_parse(labels, &watch->query.labels, NULL), 0);
        EXPECT_EQ(client_watch_start(watch), 0);
}

/* Returns the type and the name of each event, as "ADDED/a ". */
static char *summarize_events(const char *lines) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        while (*lines) {
                size_t length = strcspn(lines, "\n");
                cleanup_json json_t *event = json_loadb(lines, length, 0, NULL);
                const json_t *object = json_object_get(event, "object");
                const char *name = json_text(object, "metadata", "name");

                EXPECT(event);
                EXPECT_EQ(lines[length], '\n');
                fprintf(out, "%s/%s ", json_text(event, "type"),
                        name ? name : json_text(object, "metadata", "resourceVersion"));
                lines += length + 1;
        }
        EXPECT_EQ(fclose(out), 0);
        return text;
}

static void expect_events(ClientWatch *watch, const char *line, const char *events) {
        cleanup_free char *lines = NULL, *got = NULL;
        size_t size;
        FILE *out = open_memstream(&lines, &size);

        EXPECT_EQ(client_watch_take_line(watch, line, strlen(line), 0, out), 0);
        EXPECT_EQ(fclose(out), 0);
        got = summarize_events(lines);
        EXPECT_STREQ(got, events);
}

static void expect_pod_events(ClientWatch *watch, const char *type, const char *name,
                              const char *label, const char *phase, const char *events) {
        cleanup_json json_t *event =
                json_pack("{s:s, s:o}", "type", type, "object", make_pod(name, label, phase));
        cleanup_free char *line = json_dumps(event, JSON_COMPACT);

        expect_events(watch, line, events);
}

static const char bookmark[] = "{\"type\":\"BOOKMARK\"}";

TEST(a_watch_without_a_version_starts_with_all_objects)
{
        ObjectVersions *versions = object_versions_new(100);
        cleanup_with(client_watch_done) ClientWatch watch = { .has_end_of_list = true };

        start_watch(&watch, versions, 0, "");
        expect_pod_events(&watch, "ADDED", "a", "web", "Pending", "ADDED/a ");
        expect_events(&watch, bookmark, "BOOKMARK/101 ");
        expect_pod_events(&watch, "MODIFIED", "a", "web", "Running", "MODIFIED/a ");
        expect_pod_events(&watch, "MODIFIED", "a", "web", "Running", "");
        expect_pod_events(&watch, "DELETED", "a", "web", "Running", "DELETED/a ");
        expect_pod_events(&watch, "DELETED", "a", "web", "Running", "");
        object_versions_free(versions);
}

TEST(a_watch_continues_after_the_version_of_a_list)
{
        ObjectVersions *versions = object_versions_new(100);
        cleanup_with(client_watch_done) ClientWatch watch = { 0 };

        (void) observe(versions, "changed", "Pending"); /* 101 */
        (void) observe(versions, "gone", "Running");    /* 102 */
        (void) observe(versions, "same", "Running");    /* 103 */
        start_watch(&watch, versions, 103, "");
        expect_pod_events(&watch, "ADDED", "changed", "web", "Running", "MODIFIED/changed ");
        expect_pod_events(&watch, "ADDED", "new", "web", "Running", "ADDED/new ");
        expect_pod_events(&watch, "ADDED", "same", "web", "Running", "");
        expect_events(&watch, bookmark, "DELETED/gone ");
        expect_pod_events(&watch, "MODIFIED", "same", "web", "Failed", "MODIFIED/same ");
        object_versions_free(versions);
}

TEST(a_selector_turns_changes_into_additions_and_deletions)
{
        ObjectVersions *versions = object_versions_new(100);
        cleanup_with(client_watch_done) ClientWatch watch = { 0 };

        start_watch(&watch, versions, 0, "app=web");
        expect_pod_events(&watch, "ADDED", "a", "web", "Pending", "ADDED/a ");
        expect_pod_events(&watch, "ADDED", "b", "other", "Pending", "");
        expect_events(&watch, bookmark, "");
        expect_pod_events(&watch, "MODIFIED", "a", "other", "Pending", "DELETED/a ");
        expect_pod_events(&watch, "MODIFIED", "a", "other", "Running", "");
        expect_pod_events(&watch, "MODIFIED", "b", "web", "Pending", "ADDED/b ");
        expect_pod_events(&watch, "DELETED", "a", "other", "Running", "");
        object_versions_free(versions);
}

TEST(a_bookmark_does_not_include_versions_that_the_watch_has_not_seen)
{
        ObjectVersions *versions = object_versions_new(100);
        cleanup_with(client_watch_done) ClientWatch watch = { .has_bookmarks = true };
        cleanup_free char *lines = NULL, *got = NULL;
        size_t size;
        FILE *out;

        start_watch(&watch, versions, 0, "");
        expect_pod_events(&watch, "ADDED", "a", "web", "Pending", "ADDED/a ");
        expect_events(&watch, bookmark, "");
        (void) observe(versions, "b", "Pending"); /* before this watch reports it */
        out = open_memstream(&lines, &size);
        client_watch_finish(&watch, out);
        EXPECT_EQ(fclose(out), 0);
        got = summarize_events(lines);
        EXPECT_STREQ(got, "BOOKMARK/101 ");
        object_versions_free(versions);
}

TEST(only_the_first_table_has_columns)
{
        ObjectVersions *versions = object_versions_new(100);
        cleanup_with(client_watch_done) ClientWatch watch = { .form = { .table_version = "v1" } };
        static const char line[] =
                "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"%c\"}}}";

        start_watch(&watch, versions, 0, "");
        for (int name = 'a'; name <= 'b'; name++) {
                cleanup_free char *lines = NULL, *text = NULL;
                cleanup_json json_t *event = NULL;
                size_t size;
                FILE *out = open_memstream(&lines, &size);

                EXPECT(asprintf(&text, line, name) > 0);
                EXPECT_EQ(client_watch_take_line(&watch, text, strlen(text), 0, out), 0);
                EXPECT_EQ(fclose(out), 0);
                event = json_loads(lines, 0, NULL);
                EXPECT_STREQ(json_text(event, "object", "kind"), "Table");
                EXPECT_EQ(json_array_size(json_at(event, "object", "columnDefinitions")) > 0,
                          name == 'a');
                EXPECT_EQ(json_array_size(json_at(event, "object", "rows")), 1);
        }
        object_versions_free(versions);
}

TEST(a_line_that_is_not_an_event_ends_the_watch)
{
        static const char *const lines[] = {
                "",
                "x",
                "[]",
                "{}",
                "{\"type\":\"ADDED\"}",
                "{\"type\":\"ADDED\",\"object\":1}",
                "{\"type\":\"ADDED\",\"object\":{\"metadata\":1}}",
        };
        ObjectVersions *versions = object_versions_new(100);
        cleanup_with(client_watch_done) ClientWatch watch = { 0 };

        start_watch(&watch, versions, 0, "");
        for (size_t i = 0; i < N_ELEMENTS(lines); i++)
                EXPECT_EQ(client_watch_take_line(&watch, lines[i], strlen(lines[i]), 0, stderr),
                          -EBADMSG);
        object_versions_free(versions);
}

/* ---- lists, and namespaces ---- */

static void expect_list_events(ClientWatch *watch, json_t *list_consume, const char *events) {
        cleanup_json json_t *list = list_consume;
        cleanup_free char *lines = NULL, *got = NULL;
        size_t size;
        FILE *out = open_memstream(&lines, &size);

        EXPECT_EQ(client_watch_take_list(watch, list, 0, out), 0);
        EXPECT_EQ(fclose(out), 0);
        got = summarize_events(lines);
        EXPECT_STREQ(got, events);
}

TEST(a_list_gives_events_for_the_changes_since_the_previous_one)
{
        ObjectVersions *versions = object_versions_new(100);
        cleanup_with(client_watch_done) ClientWatch watch = { .has_end_of_list = true };

        start_watch(&watch, versions, 0, "app=web");
        expect_list_events(&watch,
                           json_pack("[o,o,o]", make_served_pod("a", "web", "1"),
                                     make_served_pod("b", "web", "1"),
                                     make_served_pod("c", "other", "1")),
                           "ADDED/a ADDED/b BOOKMARK/103 ");
        expect_list_events(&watch,
                           json_pack("[o,o]", make_served_pod("b", "web", "2"),
                                     make_served_pod("d", "web", "1")),
                           "MODIFIED/b ADDED/d DELETED/a ");
        expect_list_events(&watch,
                           json_pack("[o,o]", make_served_pod("b", "web", "2"),
                                     make_served_pod("d", "other", "1")),
                           "DELETED/d ");
        expect_list_events(&watch, json_array(), "DELETED/b ");
        expect_list_events(&watch, json_pack("[o]", make_served_pod("a", "web", "1")), "ADDED/a ");
        object_versions_free(versions);
}

TEST(a_namespace_exists_while_pods_are_in_it)
{
        cleanup_with(resource_path_done) ResourcePath path = { 0 };
        ObjectVersions *versions = object_versions_new(100);
        cleanup_with(client_watch_done) ClientWatch watch = { 0 };
        static const char line[] =
                "{\"type\":\"%s\",\"object\":{\"metadata\":{\"namespace\":\"%s\","
                "\"name\":\"%s\",\"uid\":\"u\"}}}";
        static const struct {
                const char *type, *namespace, *pod, *events;
        } steps[] = {
                { "ADDED", "shop", "a", "ADDED/shop " },
                { "ADDED", "shop", "b", "" },
                { "ADDED", "kube-system", "c", "" },
                { "MODIFIED", "shop", "a", "" },
                { "DELETED", "shop", "a", "" },
                { "DELETED", "shop", "a", "" },
                { "DELETED", "kube-system", "c", "" },
                { "DELETED", "shop", "b", "DELETED/shop " },
                { "ADDED", "shop", "a", "ADDED/shop " },
        };

        EXPECT_EQ(resource_path_parse("/api/v1/namespaces", &path), 0);
        start_watch(&watch, versions, 0, "");
        watch.resource = find_served_resource(&path);
        expect_events(&watch, bookmark, "ADDED/default ADDED/kube-node-lease ADDED/kube-system ");
        for (size_t i = 0; i < N_ELEMENTS(steps); i++) {
                cleanup_free char *text = NULL;

                REQUIRE(asprintf(&text, line, steps[i].type, steps[i].namespace, steps[i].pod) > 0);
                expect_events(&watch, text, steps[i].events);
        }
        object_versions_free(versions);
}
