/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of a lone node's Kubernetes API: paths, selectors, tables, lists, discovery. */

#include "agent/node-api/kubernetes/discovery.h"
#include "agent/node-api/kubernetes/object-list.h"
#include "agent/node-api/kubernetes/status-object.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"
#include "tests/test.h"

#define NOW (1767323045 * USEC_PER_SEC) /* 2026-01-02T03:04:05Z */

static json_t *read_json(const char *text) {
        json_error_t error;
        json_t *json = json_loads(text, JSON_DECODE_ANY, &error);

        EXPECT(json);
        return json;
}

/* ---- paths ---- */

TEST(resource_paths_name_group_namespace_resource_and_object)
{
        static const struct {
                const char *path;
                const char *group, *version, *namespace, *resource, *name, *subresource;
        } cases[] = {
                { "/api/v1", "", "v1", NULL, NULL, NULL, NULL },
                { "/api/v1/pods", "", "v1", NULL, "pods", NULL, NULL },
                { "/api/v1/nodes/a", "", "v1", NULL, "nodes", "a", NULL },
                { "/api/v1/namespaces", "", "v1", NULL, "namespaces", NULL, NULL },
                { "/api/v1/namespaces/x", "", "v1", NULL, "namespaces", "x", NULL },
                { "/api/v1/namespaces/x/status", "", "v1", NULL, "namespaces", "x", "status" },
                { "/api/v1/namespaces/x/pods", "", "v1", "x", "pods", NULL, NULL },
                { "/api/v1/namespaces/x/pods/", "", "v1", "x", "pods", NULL, NULL },
                { "/api/v1/namespaces/x/pods/a/log", "", "v1", "x", "pods", "a", "log" },
                { "/apis/apps/v1", "apps", "v1", NULL, NULL, NULL, NULL },
                { "/apis/apps/v1/namespaces/x/daemonsets/a", "apps", "v1", "x", "daemonsets", "a",
                  NULL },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(resource_path_done) ResourcePath got = { 0 };

                EXPECT_EQ(resource_path_parse(cases[i].path, &got), 0);
                EXPECT_STREQ(got.group, cases[i].group);
                EXPECT_STREQ(got.version, cases[i].version);
                EXPECT(streq_ptr(got.namespace, cases[i].namespace));
                EXPECT(streq_ptr(got.resource, cases[i].resource));
                EXPECT(streq_ptr(got.name, cases[i].name));
                EXPECT(streq_ptr(got.subresource, cases[i].subresource));
        }
}

TEST(other_paths_are_not_resources)
{
        static const char *const paths[] = {
                "",
                "/",
                "/api",
                "/apis",
                "/apis/apps",
                "/pods",
                "/api//pods",
                "/x/y/z",
                "/api/v1/pods/a/log/more",
                "/api/v1/namespaces/x/pods/a/log/more",
        };

        for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
                ResourcePath got;

                EXPECT_EQ(resource_path_parse(paths[i], &got), -EINVAL);
        }
}

/* ---- selectors ---- */

TEST(label_selectors_match_as_in_kubernetes)
{
        static const struct {
                const char *selector;
                bool matches; /* {"app":"web","tier":"back","n":"7","empty":""} */
        } cases[] = {
                { "", true },
                { "app", true },
                { "other", false },
                { "!app", false },
                { "!other", true },
                { "app=web", true },
                { "app==web", true },
                { "app = web , tier = back", true },
                { "app=web,tier=front", false },
                { "app!=web", false },
                { "other!=web", true },
                { "app in (api,web)", true },
                { "app in (api)", false },
                { "other in (api)", false },
                { "app notin (api)", true },
                { "app notin (api, web)", false },
                { "other notin (api)", true },
                { "empty=", true },
                { "empty in ()", true },
                { "n>6", true },
                { "n>7", false },
                { "n<8", true },
                { "app>1", false },
                { "other<8", false },
        };
        cleanup_json json_t *labels =
                read_json("{\"app\":\"web\",\"tier\":\"back\",\"n\":\"7\",\"empty\":\"\"}");

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(label_terms_done) LabelTerms terms = { 0 };

                EXPECT_EQ(label_terms_parse(cases[i].selector, &terms, NULL), 0);
                EXPECT_EQ(label_terms_match(&terms, labels), cases[i].matches);
        }
}

TEST(objects_without_labels_match_selectors_for_absent_labels)
{
        cleanup_with(label_terms_done) LabelTerms terms = { 0 };

        EXPECT_EQ(label_terms_parse("!a,b!=c", &terms, NULL), 0);
        EXPECT(label_terms_match(&terms, NULL));
}

TEST(broken_label_selectors_are_errors)
{
        static const char *const selectors[] = { "=a",      "a,",       "a,,b",  "a in",  "a in (b",
                                                 "a in b)", "a like b", "a>one", "(a)",   "!",
                                                 "a b",     "a=b c",    ",a",    "a==!b", "a<" };

        for (size_t i = 0; i < N_ELEMENTS(selectors); i++) {
                cleanup_error Error error = ERROR_NULL;
                LabelTerms terms;

                EXPECT_EQ(label_terms_parse(selectors[i], &terms, &error), -EINVAL);
                EXPECT(strstr(error.message, selectors[i]));
        }
}

TEST(field_selectors_match_texts_and_flags)
{
        static const char *const fields[] = { "status.phase", "spec.hostNetwork", "spec.nodeName",
                                              NULL };
        static const struct {
                const char *selector;
                bool matches;
        } cases[] = {
                { "", true },
                { "metadata.name=a", true },
                { "metadata.name==a,status.phase=Running", true },
                { "metadata.name!=a", false },
                { "status.phase!=Running", false },
                { "status.phase!=Failed,metadata.namespace=x", true },
                { "spec.hostNetwork=false", true },
                { "spec.hostNetwork=true", false },
                { "spec.nodeName=", true },
                { "spec.nodeName!=", false },
                { "metadata.name=a\\,b", false },
        };
        cleanup_json json_t *pod = read_json("{\"metadata\":{\"name\":\"a\",\"namespace\":\"x\"},"
                                             "\"status\":{\"phase\":\"Running\"}}");

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(field_terms_done) FieldTerms terms = { 0 };

                EXPECT_EQ(field_terms_parse(cases[i].selector, fields, &terms, NULL), 0);
                EXPECT_EQ(field_terms_match(&terms, pod), cases[i].matches);
        }
}

TEST(fields_that_cannot_be_selected_are_errors)
{
        static const struct {
                const char *selector, *message;
        } cases[] = {
                { "status.other=x", "field label not supported: status.other" },
                { "metadata.name", "invalid field selector" },
                { "=a", "invalid field selector" },
                { "metadata.name=a=b", "invalid field selector" },
                { "metadata.name=a\\", "invalid field selector" },
                { ",metadata.name=a", "invalid field selector" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                FieldTerms terms;

                EXPECT_EQ(field_terms_parse(cases[i].selector, NULL, &terms, &error), -EINVAL);
                EXPECT(strstr(error.message, cases[i].message));
        }
}

/* ---- forms and lists ---- */

TEST(tables_are_made_for_clients_that_accept_them)
{
        static const struct {
                const char *accept, *version;
        } cases[] = {
                { NULL, NULL },
                { "application/json", NULL },
                { "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "v1" },
                { "application/json;as=Table;g=meta.k8s.io;v=v1", "v1" },
                { "application/json;as=Table;v=v1beta1;g=meta.k8s.io", "v1beta1" },
                { "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json;v=v1",
                  "v1beta1" },
                { "application/json;as=Table;v=v1beta1,application/json;as=Table;v=v1", "v1" },
                { "application/json;as=Table;v=v2;g=meta.k8s.io", NULL },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT(streq_ptr(object_form_negotiate(cases[i].accept, NULL).table_version,
                                 cases[i].version));
        EXPECT_EQ(object_form_negotiate(NULL, "Object").included, TABLE_OBJECT_WHOLE);
        EXPECT_EQ(object_form_negotiate(NULL, "None").included, TABLE_OBJECT_NONE);
        EXPECT_EQ(object_form_negotiate(NULL, "Metadata").included, TABLE_OBJECT_METADATA);
}

static const ServedResource *find_resource(const char *path) {
        cleanup_with(resource_path_done) ResourcePath parts = { 0 };
        const ServedResource *resource;

        EXPECT_EQ(resource_path_parse(path, &parts), 0);
        resource = find_served_resource(&parts);
        EXPECT(resource);
        return resource;
}

static const char pods[] =
        "{\"items\":["
        "{\"metadata\":{\"namespace\":\"b\",\"name\":\"a\"},\"spec\":{\"nodeName\":\"n\"}},"
        "{\"metadata\":{\"namespace\":\"a\",\"name\":\"z\",\"labels\":{\"app\":\"web\"}}},"
        "{\"metadata\":{\"namespace\":\"a\",\"name\":\"c\"}}]}";

/* The names in a list, in its order. */
static char *list_names(const json_t *list) {
        char *text = strdup("");
        size_t i;
        const json_t *item;

        json_array_foreach(json_object_get(list, "items"), i, item) {
                char *longer;

                EXPECT(asprintf(&longer, "%s %s", text, json_text(item, "metadata", "name")) > 0);
                free(text);
                text = longer;
        }
        return text;
}

static void expect_list(ListQuery *query, const char *names, const char *next) {
        const ServedResource *resource = find_resource("/api/v1/pods");
        cleanup_json json_t *objects = NULL, *list = NULL;
        cleanup_free char *got = NULL;

        EXPECT_EQ(served_objects_parse(resource, pods, &objects), 0);
        list = object_list_format(resource, objects, query, &(ObjectForm){ 0 }, 7, NOW);
        got = list_names(list);
        EXPECT_STREQ(got, names);
        EXPECT_STREQ(json_text(list, "kind"), "PodList");
        EXPECT_STREQ(json_text(list, "apiVersion"), "v1");
        EXPECT_STREQ(json_text(list, "metadata", "resourceVersion"), "7");
        EXPECT(streq_ptr(json_text(list, "metadata", "continue"), next));
}

TEST(events_are_selected_by_the_component_that_is_their_source)
{
        static const struct {
                const char *selector;
                bool matches;
        } cases[] = {
                { "source=kubelet", true },
                { "source!=kubelet", false },
                { "source=scheduler", false },
        };
        cleanup_json json_t *event = read_json("{\"source\":{\"component\":\"kubelet\"}}");

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(field_terms_done) FieldTerms terms = { 0 };

                EXPECT_EQ(field_terms_parse(cases[i].selector,
                                            find_resource("/api/v1/events")->fields, &terms, NULL),
                          0);
                EXPECT_EQ(field_terms_match(&terms, event), cases[i].matches);
        }
}

TEST(lists_are_sorted_and_selected)
{
        ListQuery query = { .namespace = "a" };

        expect_list(&(ListQuery){ 0 }, " c z a", NULL);
        expect_list(&query, " c z", NULL);
        EXPECT_EQ(label_terms_parse("app=web", &query.labels, NULL), 0);
        expect_list(&query, " z", NULL);
        list_query_done(&query);
        EXPECT_EQ(field_terms_parse("spec.nodeName=n", find_resource("/api/v1/pods")->fields,
                                    &query.fields, NULL),
                  0);
        expect_list(&query, " a", NULL);
        list_query_done(&query);
}

TEST(list_chunks_continue_where_the_previous_one_ended)
{
        expect_list(&(ListQuery){ .limit = 1 }, " c", "a/c");
        expect_list(&(ListQuery){ .limit = 1, .after = "a/c" }, " z", "a/z");
        expect_list(&(ListQuery){ .limit = 1, .after = "a/z" }, " a", NULL);
        expect_list(&(ListQuery){ .limit = 3 }, " c z a", NULL);
        expect_list(&(ListQuery){ .after = "a/m" }, " z a", NULL); /* the pod there is gone */
        expect_list(&(ListQuery){ .after = "c/a" }, "", NULL);
        expect_list(&(ListQuery){ .after = "aa/a" }, " a", NULL);
        expect_list(&(ListQuery){ .after = "nonsense" }, " c z a", NULL);
}

TEST(namespaces_are_derived_from_pods)
{
        const ServedResource *resource = find_resource("/api/v1/namespaces");
        cleanup_json json_t *objects = NULL, *list = NULL;
        cleanup_free char *got = NULL;

        EXPECT_EQ(served_objects_parse(resource, pods, &objects), 0);
        list = object_list_format(resource, objects, &(ListQuery){ 0 }, &(ObjectForm){ 0 }, 7, NOW);
        got = list_names(list);
        EXPECT_STREQ(got, " a b default kube-node-lease kube-system");
}

TEST(a_reply_that_is_not_an_object_is_refused)
{
        json_t *objects;

        EXPECT_EQ(served_objects_parse(find_resource("/api/v1/pods"), "[]", &objects), -EBADMSG);
        EXPECT_EQ(served_objects_parse(find_resource("/api/v1/pods"), "", &objects), -EBADMSG);
}

/* ---- tables ---- */

/* Rows of every kind have as many cells as columns, even if fields are missing in the object. */
TEST(each_row_has_a_cell_for_each_column)
{
        cleanup_json json_t *object = read_json("{\"metadata\":{\"name\":\"a\"}}");
        cleanup_json json_t *empty = json_object();

        for (size_t i = 0; i < n_served_resources; i++) {
                const TableKind *kind = served_resources[i].table;
                cleanup_json json_t *table = table_new(kind, "v1", true);
                const json_t *columns = json_object_get(table, "columnDefinitions");
                const json_t *rows = json_object_get(table, "rows");

                EXPECT_EQ(table_add_row(table, kind, "v1", object, TABLE_OBJECT_METADATA, NOW), 0);
                EXPECT_EQ(table_add_row(table, kind, "v1", empty, TABLE_OBJECT_NONE, NOW), 0);
                for (size_t row = 0; row < 2; row++)
                        EXPECT_EQ(json_array_size(json_at(json_array_get(rows, row), "cells")),
                                  json_array_size(columns));
                EXPECT_STREQ(json_text(json_array_get(rows, 0), "object", "metadata", "name"), "a");
                EXPECT(json_is_null(json_at(json_array_get(rows, 1), "object")));
        }
}

/* Returns the cells of one object, separated by bars. */
static void expect_cells(const char *path, const char *object, const char *expected) {
        const ServedResource *resource = find_resource(path);
        cleanup_json json_t *table = NULL, *json = read_json(object);
        ObjectForm form = { .table_version = "v1" };
        char text[512] = "";
        size_t i;
        const json_t *cell;

        table = object_format(resource, json, &form, NOW);
        json_array_foreach(json_at(json_array_get(json_object_get(table, "rows"), 0), "cells"), i,
                           cell) {
                size_t length = strlen(text);

                if (json_is_string(cell))
                        (void) snprintf(text + length, sizeof(text) - length, "%s|",
                                        json_string_value(cell));
                else
                        (void) snprintf(text + length, sizeof(text) - length, "#%lld|",
                                        (long long) json_integer_value(cell));
        }
        EXPECT_STREQ(text, expected);
}

TEST(cells_contain_the_text_that_kubectl_prints)
{
        expect_cells(
                "/api/v1/pods",
                "{\"metadata\":{\"name\":\"p\",\"creationTimestamp\":\"2026-01-02T03:03:05Z\"},"
                "\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"a\"}]},"
                "\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.1\",\"containerStatuses\":"
                "[{\"name\":\"a\",\"ready\":true,\"state\":{\"running\":{}}}]}}",
                "p|1/1|Running|0|60s|10.0.0.1|n|<none>|<none>|");
        expect_cells(
                "/api/v1/nodes",
                "{\"metadata\":{\"name\":\"n\",\"labels\":{\"node-role.kubernetes.io/edge\":"
                "\"\"}},\"spec\":{\"unschedulable\":true},\"status\":{\"conditions\":[{\"type\":"
                "\"Ready\",\"status\":\"True\"}],\"addresses\":[{\"type\":\"InternalIP\","
                "\"address\":\"10.0.0.2\"}],\"nodeInfo\":{\"kubeletVersion\":\"v1.36.0\","
                "\"kernelVersion\":\"6.1\",\"architecture\":\"amd64\"}}}",
                "n|Ready,SchedulingDisabled|edge|<unknown>|v1.36.0|10.0.0.2|<none>|<unknown>|"
                "6.1 (amd64)|<unknown>|");
        expect_cells("/api/v1/events",
                     "{\"metadata\":{\"name\":\"e\"},\"type\":\"Normal\",\"reason\":\"Started\","
                     "\"message\":\"m\",\"lastTimestamp\":\"2026-01-02T03:04:00Z\",\"count\":3,"
                     "\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"p\"},"
                     "\"source\":{\"component\":\"c\",\"host\":\"h\"}}",
                     "5s|Normal|Started|pod/p||c, h|m|<unknown>|3|e|");
        expect_cells(
                "/apis/apps/v1/daemonsets",
                "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"selector\":{\"matchLabels\":{\"a\":"
                "\"b\"}},\"template\":{\"spec\":{\"containers\":[{\"name\":\"x\",\"image\":\"i\"},"
                "{\"name\":\"y\",\"image\":\"j\"}]}}},\"status\":{\"desiredNumberScheduled\":1,"
                "\"numberReady\":1}}",
                "d|#1|#0|#1|#0|#0|<none>|<unknown>|x,y|i,j|a=b|");
        expect_cells("/api/v1/secrets",
                     "{\"metadata\":{\"name\":\"s\"},\"data\":{\"a\":\"\",\"b\":\"\"}}",
                     "s|Opaque|2|<unknown>|");
}

/* ---- discovery and failures ---- */

TEST(discovery_lists_groups_and_resources)
{
        cleanup_json json_t *versions = discovery_document("/api");
        cleanup_json json_t *groups = discovery_document("/apis/");
        cleanup_json json_t *group = discovery_document("/apis/apps");
        cleanup_json json_t *core = discovery_document("/api/v1");
        cleanup_json json_t *all = discovery_aggregated("/apis");
        const json_t *first = json_array_get(json_object_get(core, "resources"), 0);

        EXPECT_STREQ(json_string_value(json_array_get(json_object_get(versions, "versions"), 0)),
                     "v1");
        EXPECT_EQ(json_array_size(json_object_get(groups, "groups")), 7);
        EXPECT_STREQ(json_text(group, "preferredVersion", "groupVersion"), "apps/v1");
        EXPECT_STREQ(json_text(first, "name"), "pods");
        EXPECT_STREQ(json_text(core, "groupVersion"), "v1");
        EXPECT_EQ(json_array_size(json_object_get(all, "items")), 7);
        EXPECT(!discovery_document("/apis/none"));
        EXPECT(!discovery_document("/apis/none/v1"));
        EXPECT(!discovery_document("/api/v1/pods"));
        EXPECT(!discovery_aggregated("/api/v1"));
}

TEST(failures_are_status_objects)
{
        cleanup_free char *text = status_object_format(404, "pods \"a\" not found");
        cleanup_json json_t *status = read_json(text);

        EXPECT_STREQ(json_text(status, "kind"), "Status");
        EXPECT_STREQ(json_text(status, "status"), "Failure");
        EXPECT_STREQ(json_text(status, "reason"), "NotFound");
        EXPECT_STREQ(json_text(status, "message"), "pods \"a\" not found");
        EXPECT_EQ(json_integer_value(json_object_get(status, "code")), 404);
        EXPECT_STREQ(status_reason(405), "MethodNotAllowed");
        EXPECT_STREQ(status_reason(499), "");
        EXPECT(!status_object_format(400, "\xff"));
}
