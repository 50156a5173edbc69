/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/pod-classes.h"

#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "tests/test.h"

static const char classes_yaml[] =
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\n"
        "value: 1000\n---\n"
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: usual}\n"
        "value: 7\nglobalDefault: true\n---\n"
        "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: kata}\nhandler: vm\n"
        "overhead: {podFixed: {cpu: 250m}}\n---\n"
        "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: odd}\nhandler: "
        "none\n---\n"
        "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: plain}\nhandler: runc\n";

static ManifestObjects parse_manifest(const char *yaml) {
        ManifestObjects objects = { 0 };

        REQUIRE(manifest_parse("f", yaml, strlen(yaml), "n", &objects, NULL) >= 0);
        return objects;
}

static ManifestObjects parse_pod(const char *line) {
        char yaml[512];

        (void) snprintf(yaml, sizeof(yaml),
                        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  %s\n"
                        "  containers: [{name: c, image: i}]\n",
                        line);
        return parse_manifest(yaml);
}

static const DataObject *find_class(const ObjectKey *key, void *userdata) {
        const ManifestObjects *objects = userdata;

        for (size_t i = 0; i < objects->data.n; i++) {
                const DataObject *object = objects->data.items[i];

                if (key->name ? object_key_matches(key, object)
                              : object->kind == key->kind && object->priority.global_default)
                        return object;
        }
        return NULL;
}

TEST(a_pod_has_the_priority_of_its_class_or_of_the_default_one)
{
        static const struct {
                const char *line;
                const char *class;
                int64_t priority;
        } cases[] = {
                { "priorityClassName: high", "high", 1000 },
                { "hostname: h", "usual", 7 },
                { "priority: 3", NULL, 3 },
                { "priorityClassName: system-node-critical", "system-node-critical", 2000001000 },
        };
        ManifestObjects objects = parse_manifest(classes_yaml);
        const ObjectLookup lookup = { .find = find_class, .userdata = &objects };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                ManifestObjects pods = parse_pod(cases[i].line);
                PodSpec *spec = &pods.pods.items[0]->spec;

                EXPECT_EQ(resolve_pod_classes(&lookup, NULL, pods.pods.items[0]), 0);
                EXPECT_STREQ(strna(spec->priority_class_name), strna(cases[i].class));
                EXPECT_EQ(spec->priority.value, cases[i].priority);
                manifest_objects_done(&pods);
        }
        manifest_objects_done(&objects);
}

TEST(a_removed_class_does_not_change_running_pods)
{
        ManifestObjects objects = parse_manifest(classes_yaml), none = { 0 };
        ManifestObjects before = parse_pod("priorityClassName: high\n  runtimeClassName: kata");
        const ObjectLookup with = { .find = find_class, .userdata = &objects };
        const ObjectLookup without = { .find = find_class, .userdata = &none };
        Pod *running = before.pods.items[0];
        cleanup_with(pod_freep) Pod *again = NULL;

        REQUIRE(pod_copy(running, &again) == 0);
        EXPECT_EQ(resolve_pod_classes(&with, NULL, running), 0);
        EXPECT_EQ(running->spec.overhead->cpu.milli, 250);
        EXPECT_EQ(resolve_pod_classes(&without, running, again), 0);
        EXPECT_EQ(again->spec.priority.value, 1000);
        EXPECT_EQ(again->spec.overhead->cpu.milli, 250);
        EXPECT(pod_spec_equal(&running->spec, &again->spec));
        manifest_objects_done(&before);
        manifest_objects_done(&objects);
}

TEST(a_runtime_class_handler_selects_a_configured_runtime)
{
        static const struct {
                const char *line;
                const char *runtime; /* NULL: none */
                const char *sentence;
        } cases[] = {
                { "hostname: h", "/usr/sbin/runc", NULL },
                { "runtimeClassName: kata", "/opt/vm", NULL },
                { "runtimeClassName: plain", "/usr/sbin/runc", NULL },
                { "runtimeClassName: odd", NULL,
                  "no runtime for \"none\" is configured, which RuntimeClass \"odd\" names" },
                { "runtimeClassName: gone", NULL, "RuntimeClass \"gone\" not found" },
                { "priorityClassName: gone", NULL, "no PriorityClass with name gone was found" },
        };
        char handler[] = "vm", path[] = "/opt/vm";
        KeyValue one = { .key = handler, .value = path };
        const StringMap handlers = { .items = &one, .n = 1 };
        const OciRuntimes runtimes = { .path = "/usr/sbin/runc", .handlers = &handlers };
        ManifestObjects objects = parse_manifest(classes_yaml);
        const ObjectLookup lookup = { .find = find_class, .userdata = &objects };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                ManifestObjects pods = parse_pod(cases[i].line);
                cleanup_error Error error = ERROR_NULL;
                const char *runtime = NULL;
                int r = check_pod_classes(&lookup, &runtimes, pods.pods.items[0], &runtime, &error);

                EXPECT_EQ(r, cases[i].runtime ? 0 : -ENOENT);
                EXPECT_STREQ(strna(runtime), strna(cases[i].runtime));
                EXPECT_STREQ(r < 0 ? error_message(&error, r) : "", strna(cases[i].sentence));
                manifest_objects_done(&pods);
        }
        manifest_objects_done(&objects);
}
