/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/manifest.h"
#include "agent/model/json.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"
#include "tests/test.h"

#include <fcntl.h>

#define EVERYTHING SOURCE_DIR "/tests/unit/manifest/everything.yaml"

/* The rest of a valid pod; line 5 is the first one of the test. */
#define HEAD      "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n"
#define CONTAINER "  containers: [{name: c, image: busybox}]\n"

static ManifestObjects parse_ok(const char *yaml) {
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error);

        if (r < 0)
                test_fail(__FILE__, __LINE__, yaml, "is refused: %s", error_message(&error, r));
        REQUIRE(r == 0);
        return objects;
}

static void expect_refused(const char *yaml, const char *sentence) {
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error), -EINVAL);
        EXPECT_STREQ(error.message, sentence);
        manifest_objects_done(&objects);
}

static ManifestObjects parse_everything(void) {
        cleanup_free char *yaml = NULL;

        REQUIRE(read_file_at(AT_FDCWD, EVERYTHING, MIB, &yaml, NULL) == 0);
        return parse_ok(yaml);
}

static size_t row_size(const Field *field) {
        switch (field->type) {
        case FIELD_BOOL:
        case FIELD_PRESENT:
                return sizeof(bool);
        case FIELD_OPTIONAL_BOOL:
                return sizeof(OptionalBool);
        case FIELD_ENUM:
                return sizeof(int);
        case FIELD_INT_OR_STRING:
                return sizeof(IntOrString);
        case FIELD_STRING:
        case FIELD_STRINGS:
        case FIELD_OPTIONAL:
                return sizeof(void *);
        default:
                return sizeof(List);
        }
}

/* Adds the rows that are set in an object to the notes, as "Schema.key". */
static void note_rows(const Schema *schema, const void *object, char ***notes);

static void note_row(const Schema *schema, const Field *field, const void *object, char ***notes) {
        static const char zeros[256] = { 0 };
        const void *at = field_at_const(field, object);
        size_t size = row_size(field);
        void *pointer;

        if (field->type == FIELD_OBJECT) {
                note_rows(field->schema, at, notes);
                size = MIN(field->schema->size, sizeof(zeros));
        }
        if (memcmp(at, zeros, size) == 0)
                return;
        REQUIRE(strv_appendf(notes, "%s.%s", schema->name, field->key) == 0);
        if (field->type == FIELD_OPTIONAL) {
                memcpy(&pointer, at, sizeof(pointer));
                note_rows(field->schema, pointer, notes);
        }
        if (field->type == FIELD_LIST || field->type == FIELD_REST) {
                List list = field_list(field, object);

                for (size_t i = 0; i < list.n; i++)
                        note_rows(field->schema,
                                  (const char *) list.items + i * field->schema->size, notes);
        }
}

static bool is_honoured(const Field *field) {
        return field->type != FIELD_REFUSED && field->type != FIELD_IGNORED && !field->is_api_only;
}

static void note_rows(const Schema *schema, const void *object, char ***notes) {
        for (size_t i = 0; i < schema->n_fields; i++)
                if (is_honoured(&schema->fields[i]))
                        note_row(schema, &schema->fields[i], object, notes);
}

static void expect_rows(const Schema *schema, char **notes) {
        for (size_t i = 0; i < schema->n_fields; i++) {
                const Field *field = &schema->fields[i];
                char row[128];
                bool found = false;

                if (!is_honoured(field))
                        continue;
                (void) snprintf(row, sizeof(row), "%s.%s", schema->name, field->key);
                strv_foreach(note, notes)
                        found = found || streq(*note, row);
                if (!found)
                        test_fail(__FILE__, __LINE__, row, "is honoured but in no fixture");
                if (field->schema)
                        expect_rows(field->schema, notes);
        }
}

TEST(every_supported_field_is_in_the_fixture_and_decoded)
{
        ManifestObjects objects = parse_everything();
        cleanup_strv char **notes = NULL;

        for (size_t i = 0; i < objects.pods.n; i++)
                note_rows(&pod_schema, objects.pods.items[i], &notes);
        for (size_t i = 0; i < objects.daemonsets.n; i++)
                note_rows(&daemonset_schema, objects.daemonsets.items[i], &notes);
        expect_rows(&pod_schema, notes);
        expect_rows(&daemonset_schema, notes);
        EXPECT(objects.warnings == NULL);
        manifest_objects_done(&objects);
}

TEST(written_pod_is_read_back_equal)
{
        ManifestObjects objects = parse_everything();
        cleanup_with(pod_freep) Pod *pod = NULL;
        cleanup_free char *json = NULL, *again = NULL;

        REQUIRE(objects.pods.n > 0);
        json = pod_to_json(objects.pods.items[0], NULL);
        REQUIRE(json);
        REQUIRE(manifest_parse_record(json, strlen(json), &pod, NULL) == 0);
        EXPECT(schema_equal(&pod_schema, pod, objects.pods.items[0]));
        EXPECT(pod_spec_equal(&pod->spec, &objects.pods.items[0]->spec));
        again = pod_to_json(pod, NULL);
        EXPECT_STREQ(again, json);
        manifest_objects_done(&objects);
}

TEST(a_copy_is_equal_and_independent)
{
        ManifestObjects objects = parse_everything();
        Pod *pod, *copy = calloc(1, sizeof(*copy));

        REQUIRE(copy && objects.pods.n > 0);
        pod = objects.pods.items[0];
        REQUIRE(schema_copy(&pod_schema, copy, pod) == 0);
        EXPECT(schema_equal(&pod_schema, copy, pod));
        copy->spec.containers.items[0].command[0][0] = 'x';
        EXPECT(!pod_spec_equal(&copy->spec, &pod->spec));
        pod_free(copy);
        manifest_objects_done(&objects);
}

/* For every row: if the copy does not have it, the comparison must report a difference. */
static void expect_differences(const Schema *schema, void *object, const Pod *whole,
                               const Pod *original) {
        for (size_t i = 0; i < schema->n_fields; i++) {
                const Field *field = &schema->fields[i];
                /* The whole object is saved and restored, so that its memory is not leaked. */
                cleanup_free char *saved = malloc(schema->size + 1);

                REQUIRE(saved);
                if (!is_honoured(field) || field->type == FIELD_OBJECT)
                        continue;
                memcpy(saved, object, schema->size);
                memset(field_at(field, object), 0, row_size(field));
                /* Fields of the fixture's other pods. */
                if (memcmp(object, saved, schema->size) == 0)
                        continue;
                if (schema_equal(&pod_schema, whole, original))
                        test_fail(__FILE__, __LINE__, field->key, "is not compared in %s",
                                  schema->name);
                memcpy(object, saved, schema->size);
        }
}

TEST(every_field_is_compared)
{
        ManifestObjects objects = parse_everything();
        Pod *pod, *copy = calloc(1, sizeof(*copy));

        REQUIRE(copy && objects.pods.n > 0);
        pod = objects.pods.items[0];
        REQUIRE(schema_copy(&pod_schema, copy, pod) == 0);
        expect_differences(&object_meta_schema, &copy->metadata, copy, pod);
        expect_differences(&pod_spec_schema, &copy->spec, copy, pod);
        expect_differences(&container_schema, &copy->spec.containers.items[0], copy, pod);
        EXPECT(schema_equal(&pod_schema, copy, pod));
        pod_free(copy);
        manifest_objects_done(&objects);
}

TEST(defaults_are_those_of_kubernetes)
{
        ManifestObjects objects = parse_ok(
                HEAD "  hostNetwork: true\n"
                     "  containers:\n"
                     "  - {name: a, image: x, ports: [{containerPort: 80}],\n"
                     "     resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 0.5}}}\n");
        const PodSpec *spec = &objects.pods.items[0]->spec;
        const Container *container = &spec->containers.items[0];

        EXPECT_STREQ(objects.pods.items[0]->metadata.namespace, "default");
        EXPECT_EQ(spec->restart_policy, RESTART_POLICY_ALWAYS);
        EXPECT_EQ(spec->termination_grace_period_seconds.value, 30);
        EXPECT_EQ(container->ports.items[0].protocol, PROTOCOL_TCP);
        EXPECT_EQ(container->ports.items[0].host_port.value, 80);
        EXPECT_STREQ(container->resources.requests.cpu.text, "500m");
        EXPECT_STREQ(container->resources.requests.memory.text, "1Gi");
        manifest_objects_done(&objects);
}

TEST(host_port_defaults_only_in_the_host_network)
{
        ManifestObjects objects =
                parse_ok(HEAD "  containers: [{name: a, image: x, ports: [{containerPort: 80, "
                              "hostPort: 0}, {containerPort: 80}]}]\n");

        EXPECT(!objects.pods.items[0]->spec.containers.items[0].ports.items[0].host_port.is_set);
        EXPECT(!objects.pods.items[0]->spec.containers.items[0].ports.items[1].host_port.is_set);
        manifest_objects_done(&objects);
}

TEST(the_pull_policy_follows_from_the_tag)
{
        static const struct {
                const char *image;
                PullPolicy policy;
        } cases[] = {
                { "busybox", PULL_POLICY_ALWAYS },
                { "busybox:latest", PULL_POLICY_ALWAYS },
                { "localhost:5000/busybox", PULL_POLICY_ALWAYS },
                { "localhost:5000/busybox:latest", PULL_POLICY_ALWAYS },
                { "busybox:1.36", PULL_POLICY_IF_NOT_PRESENT },
                { "busybox:latest-glibc", PULL_POLICY_IF_NOT_PRESENT },
                { "localhost:5000/busybox:1.36", PULL_POLICY_IF_NOT_PRESENT },
                { "busybox@sha256:aaaa", PULL_POLICY_IF_NOT_PRESENT },
                { "busybox:1.36@sha256:aaaa", PULL_POLICY_IF_NOT_PRESENT },
                { "busybox:latest@sha256:aaaa", PULL_POLICY_ALWAYS },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                ManifestObjects objects;
                char yaml[256];

                (void) snprintf(yaml, sizeof(yaml), HEAD "  containers: [{name: c, image: '%s'}]\n",
                                cases[i].image);
                objects = parse_ok(yaml);
                EXPECT_STREQ(
                        pull_policy_names
                                [objects.pods.items[0]->spec.containers.items[0].image_pull_policy],
                        pull_policy_names[cases[i].policy]);
                manifest_objects_done(&objects);
        }
}

static const char *uid_of(const char *file, const char *yaml, const char *node, char uid[40]) {
        ManifestObjects objects = { 0 };

        REQUIRE(manifest_parse(file, yaml, strlen(yaml), node, &objects, NULL) == 0);
        (void) snprintf(uid, 40, "%s", objects.pods.items[0]->metadata.uid);
        manifest_objects_done(&objects);
        return uid;
}

TEST(pod_from_a_file_has_the_identity_of_a_static_pod)
{
        ManifestObjects objects = { 0 };
        const ObjectMeta *metadata;

        REQUIRE(manifest_parse("f", HEAD CONTAINER, strlen(HEAD CONTAINER), "Node.Example",
                               &objects, NULL) == 0);
        metadata = &objects.pods.items[0]->metadata;
        EXPECT_STREQ(metadata->name, "web-node.example");
        EXPECT_STREQ(objects.pods.items[0]->spec.node_name, "Node.Example");
        EXPECT_EQ(strlen(metadata->uid), 32);
        EXPECT_EQ(strspn(metadata->uid, "0123456789abcdef"), 32);
        EXPECT_EQ(strlen(string_map_get(&metadata->annotations, "kubernetes.io/config.hash")), 32);
        EXPECT_STREQ(string_map_get(&metadata->annotations, "kubernetes.io/config.source"), "file");
        EXPECT(string_map_get(&metadata->annotations, "kubernetes.io/config.seen") != NULL);
        manifest_objects_done(&objects);
}

/* Returns the pod's config.hash, which the caller frees. */
static char *config_hash_of(const char *yaml) {
        ManifestObjects objects = { 0 };
        char *hash;

        REQUIRE(manifest_parse("f", yaml, strlen(yaml), "n", &objects, NULL) == 0);
        hash = strdup(string_map_get(&objects.pods.items[0]->metadata.annotations,
                                     "kubernetes.io/config.hash"));
        manifest_objects_done(&objects);
        return hash;
}

TEST(config_hash_changes_with_every_field_of_a_manifest)
{
        static const char *const others[] = {
                "{kind: Pod, apiVersion: v1, metadata: {name: web, labels: {a: c}}, "
                "spec: {containers: [{name: c, image: i}]}}",
                "{kind: Pod, apiVersion: v1, metadata: {name: web, labels: {a: b}, annotations: "
                "{a: "
                "b}}, spec: {containers: [{name: c, image: i}]}}",
                "{kind: Pod, apiVersion: v1, metadata: {name: web, labels: {a: b}}, "
                "spec: {containers: [{name: c, image: j}]}}",
        };
        static const char one[] = "{kind: Pod, apiVersion: v1, metadata: {name: web, labels: {a: "
                                  "b}}, spec: {containers: [{name: c, image: i}]}}";
        static const char same[] = "# a comment\napiVersion: v1\nkind: Pod\nmetadata:\n  name: "
                                   "web\n  labels: {a: b}\nspec:\n  containers:\n  - {image: i, "
                                   "name: c}\n";
        cleanup_free char *hash = config_hash_of(one), *equal = config_hash_of(same);

        EXPECT_STREQ(hash, equal);
        for (size_t i = 0; i < N_ELEMENTS(others); i++) {
                cleanup_free char *other = config_hash_of(others[i]);

                EXPECT(!streq(hash, other));
        }
}

TEST(uid_changes_only_with_node_name_and_spec)
{
        static const char base[] = HEAD CONTAINER;
        static const char *const same[] = {
                "# a comment\n" HEAD CONTAINER,
                ("kind: Pod\nmetadata: {labels: {a: b}, name: web, annotations: {c: d}}\n"
                 "apiVersion: v1\nspec:\n  restartPolicy: Always\n" CONTAINER),
                ("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\"},"
                 "\"spec\":{\"containers\":[{\"image\":\"busybox\",\"name\":\"c\"}]}}"),
        };
        static const char *const other[] = {
                HEAD CONTAINER "  hostNetwork: true\n",
                HEAD "  containers: [{name: c, image: busybox:2}]\n",
                "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: x}\nspec:\n" CONTAINER,
                "apiVersion: v1\nkind: Pod\nmetadata: {name: web2}\nspec:\n" CONTAINER,
        };
        char expected[40], uid[40];

        uid_of("f", base, "node1", expected);
        EXPECT_STREQ(uid_of("another.json", base, "node1", uid), expected);
        for (size_t i = 0; i < N_ELEMENTS(same); i++)
                EXPECT_STREQ(uid_of("f", same[i], "node1", uid), expected);
        for (size_t i = 0; i < N_ELEMENTS(other); i++)
                EXPECT(!streq(uid_of("f", other[i], "node1", uid), expected));
        EXPECT(!streq(uid_of("f", base, "node2", uid), expected));
}

#define POD(name)                                                  \
        "{apiVersion: v1, kind: Pod, metadata: {name: " name "}, " \
        "spec: {containers: [{name: c, image: i}]}}"

TEST(several_documents_and_lists_are_unpacked)
{
        ManifestObjects objects = parse_ok("---\n# nothing\n---\n" POD(
                "a") "\n---\n"
                     "apiVersion: v1\nkind: List\nitems:\n- " POD(
                             "b") "\n- {apiVersion: v1, kind: List, items: [" POD("c") "]}\n");

        EXPECT_EQ(objects.pods.n, 3);
        EXPECT_STREQ(objects.pods.items[0]->metadata.name, "a-node1");
        EXPECT_STREQ(objects.pods.items[2]->metadata.name, "c-node1");
        manifest_objects_done(&objects);
}

TEST(one_invalid_document_invalidates_the_file)
{
        expect_refused(POD("a") "\n---\n" POD("B"),
                       "f:3:46: metadata.name: must be a DNS subdomain, not 'B'");
        expect_refused("apiVersion: v1\nkind: List\nitems: [" POD("a") ",\n" POD("B") "]",
                       "f:4:46: items[1].metadata.name: must be a DNS subdomain, not 'B'");
        expect_refused(POD("a") "\n---\n" POD("a"),
                       "f:3:46: metadata.name: pod default/a is defined twice in this file");
        expect_refused("", "f: holds no object");
        expect_refused("# only a comment\n", "f: holds no object");
        expect_refused("---\n---\n", "f: holds no object");
        expect_refused("apiVersion: v1\nkind: List\nitems: []\n", "f: holds no object");
}

TEST(unsupported_kinds_are_refused)
{
        static const struct {
                const char *yaml;
                const char *sentence;
        } cases[] = {
                { "hello", "f:1:1: must be an object with kind and apiVersion" },
                { "- a", "f:1:1: must be an object with kind and apiVersion, not a list" },
                { "a: b", "f:1:1: apiVersion: is required" },
                { "apiVersion: v1", "f:1:1: kind: is required" },
                { "apiVersion: 1\nkind: Pod", "f:1:13: apiVersion: must be a string" },
                { "apiVersion: v2\nkind: Pod",
                  "f:1:13: apiVersion: must be v1 for a Pod, not 'v2'" },
                { "apiVersion: apps/v1\nkind: Deployment",
                  "f:2:7: kind: is Deployment, which only a controller of a cluster runs; delete "
                  "it, or make its template a Pod or a DaemonSet; a node runs Pod, DaemonSet, "
                  "ConfigMap, Secret, PriorityClass, RuntimeClass and List" },
                { "apiVersion: example.com/v1\nkind: Widget",
                  "f:2:7: kind: is Widget, which a node does not run; it runs Pod, DaemonSet, "
                  "ConfigMap, Secret, PriorityClass, RuntimeClass and List" },
                { "apiVersion: apps/v1\nkind: DaemonSet", "f:1:1: metadata: is required" },
                { "apiVersion: v1\nkind: DaemonSet",
                  "f:1:13: apiVersion: must be apps/v1 for a DaemonSet (or apps/v1beta2, "
                  "apps/v1beta1, extensions/v1beta1), not 'v1'" },
                { "apiVersion: v1\nkind: ConfigMap", "f:1:1: metadata: is required" },
                { "apiVersion: v1\nkind: pod", "f:2:7: kind: must be Pod, not 'pod'" },
                { "apiVersion: v1\nkind: List\nitems: x", "f:3:8: items: must be a list" },
                { "apiVersion: v1\nkind: Pod", "f:1:1: metadata: is required" },
                { "apiVersion: v1\nkind: Pod\nmetadata: {}", "f:3:11: metadata.name: is required" },
                { "apiVersion: v1\nkind: Pod\nmetadata: {name: a}", "f:1:1: spec: is required" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                expect_refused(cases[i].yaml, cases[i].sentence);
}

TEST(record_requires_namespace_and_uid)
{
        static const struct {
                const char *json;
                const char *sentence;
        } cases[] = {
                { "", "is not a record of a pod" },
                { "[]", "record:1:1: must be a mapping, not a list" },
                { "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":[{\"name\":\"c\","
                  "\"image\":\"i\"}]}}",
                  "is not a record of a pod: it has no UID" },
                { "{\"metadata\":{\"name\":\"a\",\"uid\":\"../../x\"}}",
                  "record:1:31: metadata.uid: must be a UID, not '../../x'" },
                { "{\"metadata\":{\"name\":\"../x\"}}",
                  "record:1:21: metadata.name: must be a DNS subdomain, not '../x'" },
                { "{\"metadata\":{\"name\":\"a\"},\"later\":1}",
                  "record:1:26: later: is not known to this version" },
                { "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"nodeName\":\"n\",\"schedulingGates\":"
                  "[{\"name\":\"g\"}]}}",
                  "record:1:49: spec.schedulingGates: needs a cluster: only its scheduler uses "
                  "this field" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                Pod *pod = NULL;

                EXPECT_EQ(manifest_parse_record(cases[i].json, strlen(cases[i].json), &pod, &error),
                          -EINVAL);
                EXPECT_STREQ(error.message, cases[i].sentence);
                EXPECT(pod == NULL);
        }
}

TEST(pod_names_leave_space_for_the_node_suffix)
{
        char name[254], yaml[512];

        /* "default_<name>-node1_<UID>" has 255 characters, the maximum for the name of a file. */
        memset(name, 'a', sizeof(name));
        name[208] = '\0';
        (void) snprintf(yaml, sizeof(yaml),
                        "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n" CONTAINER, name);
        {
                ManifestObjects objects = parse_ok(yaml);

                EXPECT_EQ(strlen(objects.pods.items[0]->metadata.name) +
                                  strlen(objects.pods.items[0]->metadata.uid) + strlen("default__"),
                          255);
                manifest_objects_done(&objects);
        }
        (void) snprintf(yaml, sizeof(yaml),
                        "apiVersion: v1\nkind: Pod\nmetadata: {name: a%s}\nspec:\n" CONTAINER,
                        name);
        expect_refused(yaml,
                       "f:3:18: metadata.name: must be at most 208 characters, so that the "
                       "directory of the pod's logs can have the namespace and '-node1' in its "
                       "name");
        memset(name, 'a', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        (void) snprintf(yaml, sizeof(yaml),
                        "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n" CONTAINER, name);
        expect_refused(yaml, "f:3:18: metadata.name: must be at most 247 characters, so that "
                             "'-node1' can follow");
}

/* A pod with an argument that consists of 'n' times 'character', and that 'tail' repeats. */
static char *print_large_pod(const char *character, size_t n, const char *tail) {
        char *yaml = NULL;
        size_t length;
        FILE *out = open_memstream(&yaml, &length);

        REQUIRE(out);
        fputs("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
              "  containers:\n  - {name: c, image: i, args: [&a \"",
              out);
        while (n-- > 0)
                fputs(character, out);
        fputs(tail, out);
        REQUIRE(fclose(out) == 0);
        return yaml;
}

TEST(pod_that_is_too_large_for_its_record_is_refused)
{
        cleanup_free char *large = print_large_pod("x", 700000, "\", *a, *a]}\n");
        /* Each of these characters is written as "\u0001" in the record. */
        cleanup_free char *fits = print_large_pod("\\x01", MIB - 100, "\", *a]}\n"), *json = NULL;
        ManifestObjects objects;

        expect_refused(large, "f:1:1: must be at most 2 MiB, not 2100061 bytes");
        objects = parse_ok(fits);
        json = pod_to_json(objects.pods.items[0], NULL);
        REQUIRE(json);
        EXPECT(strlen(json) > 11 * MIB && strlen(json) < 15 * MIB);
        manifest_objects_done(&objects);
}

TEST(container_resources_stay_within_pod_level_resources)
{
        expect_refused(HEAD
                       "  resources: {requests: {cpu: 1}}\n"
                       "  containers: [{name: a, image: x, resources: {requests: {cpu: 2}}}]\n",
                       "f:5:31: spec.resources.requests.cpu: must be greater than or equal to "
                       "aggregate container requests");
        expect_refused(HEAD "  resources: {limits: {memory: 1Gi}}\n"
                            "  containers: [{name: a, image: x, resources: {limits: {memory: 2Gi}, "
                            "requests: {memory: 1}}}]\n",
                       "f:6:65: spec.containers[0].resources.limits.memory: must be less than or "
                       "equal to pod limits of 1Gi");
}
