/* SPDX-License-Identifier: Apache-2.0 */
/* PriorityClasses and RuntimeClasses, and references to them. */

#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "tests/test.h"

#define PRIORITY "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n"
#define RUNTIME  "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\n"
#define POD                                                                                       \
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: c, image: " \
        "i}]\n"

static ManifestObjects parse_ok(const char *yaml) {
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error);

        if (r < 0)
                test_fail(__FILE__, __LINE__, yaml, "is refused: %s", error_message(&error, r));
        REQUIRE(r == 0);
        return objects;
}

TEST(priority_class_has_a_value_and_is_cluster_scoped)
{
        ManifestObjects objects = parse_ok(PRIORITY "metadata: {name: high}\nvalue: 1000\n"
                                                    "globalDefault: true\ndescription: all\n"
                                                    "preemptionPolicy: Never\n");
        const DataObject *class;

        REQUIRE(objects.data.n == 1);
        class = objects.data.items[0];
        EXPECT_EQ(class->kind, OBJECT_PRIORITY_CLASS);
        EXPECT_STREQ(class->metadata.namespace, "");
        EXPECT_EQ(class->priority.value.value, 1000);
        EXPECT(class->priority.global_default);
        EXPECT_STREQ(class->priority.description, "all");
        EXPECT_EQ(class->priority.preemption_policy, PREEMPTION_NEVER);
        manifest_objects_done(&objects);
}

TEST(a_runtime_class_has_a_handler_and_an_overhead)
{
        ManifestObjects objects =
                parse_ok(RUNTIME "metadata: {name: kata}\nhandler: kata-qemu\n"
                                 "overhead: {podFixed: {cpu: 250m, memory: 120Mi}}\n"
                                 "scheduling: {nodeSelector: {a: b}, tolerations: [{key: k}]}\n");
        const DataObject *class;

        REQUIRE(objects.data.n == 1);
        class = objects.data.items[0];
        EXPECT_EQ(class->kind, OBJECT_RUNTIME_CLASS);
        EXPECT_STREQ(class->runtime.handler, "kata-qemu");
        EXPECT_EQ(class->runtime.overhead.pod_fixed.cpu.milli, 250);
        EXPECT_EQ(class->runtime.overhead.pod_fixed.memory.value, 120 * 1024 * 1024);
        manifest_objects_done(&objects);
}

TEST(invalid_classes_are_refused_with_the_messages_of_kubernetes)
{
        static const struct {
                const char *yaml;
                const char *verdict;
        } cases[] = {
                { PRIORITY "metadata: {name: a}\n", "f:1:1: value: is required" },
                { PRIORITY "metadata: {name: a}\nvalue: 1000000001\n",
                  "f:4:8: value: maximum allowed value of a user defined priority is 1000000000" },
                { PRIORITY "metadata: {name: a}\nvalue: -2147483649\n",
                  "f:4:8: value: must be between -2147483648 and 2147483647, not -2147483649" },
                { PRIORITY "metadata: {name: system-mine}\nvalue: 1\n",
                  "f:3:18: metadata.name: names with the prefix 'system-' are reserved for system "
                  "use only" },
                { PRIORITY "metadata: {name: a, namespace: b}\nvalue: 1\n",
                  "f:3:32: metadata.namespace: not allowed on this type" },
                { PRIORITY "metadata: {name: a}\nvalue: 1\npreemptionPolicy: Always\n",
                  "f:5:19: preemptionPolicy: must be PreemptLowerPriority or Never, not "
                  "'Always'" },
                { PRIORITY "metadata: {name: a}\nvalue: 1\n---\n" PRIORITY
                           "metadata: {name: a}\nvalue: 2\n",
                  "f:8:18: metadata.name: priorityclass a is defined twice in this file" },
                { PRIORITY "metadata: {name: a}\nvalue: 1\nglobalDefault: true\n---\n" PRIORITY
                           "metadata: {name: b}\nvalue: 2\nglobalDefault: true\n",
                  "f:11:16: globalDefault: may be true in only one PriorityClass, but two in this "
                  "file set it" },
                { RUNTIME "metadata: {name: a}\n", "f:1:1: handler: is required" },
                { RUNTIME "metadata: {name: a}\nhandler: Kata\n",
                  "f:4:10: handler: must be a DNS label, not 'Kata'" },
                { RUNTIME "metadata: {name: a}\nhandler: h\noverhead: {podFixed: {cpu: -1}}\n",
                  "f:5:22: overhead.podFixed: must not be negative" },
                { RUNTIME "metadata: {name: a}\nhandler: h\noverhead: {podFixed: {disk: 1}}\n",
                  "f:5:23: overhead.podFixed.disk: is not a resource of this node; it has cpu, "
                  "memory, "
                  "ephemeral-storage, hugepages-1Gi and hugepages-2Mi" },
                { POD "  overhead: {cpu: 1}\n", "f:6:13: spec.overhead: must be absent without a "
                                                "runtimeClassName" },
                { POD "  priorityClassName: high\n  priority: 5\n",
                  "f:7:13: spec.priority: must be absent when priorityClassName is set" },
                { POD "  priorityClassName: system-other\n",
                  "f:6:22: spec.priorityClassName: is not a system class; system classes are "
                  "system-node-critical and system-cluster-critical" },
                { POD "  runtimeClassName: Kata\n",
                  "f:6:21: spec.runtimeClassName: must be a DNS subdomain, not 'Kata'" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                ManifestObjects objects = { 0 };
                cleanup_error Error error = ERROR_NULL;
                int r = manifest_parse("f", cases[i].yaml, strlen(cases[i].yaml), "node1", &objects,
                                       &error);

                EXPECT_STREQ(r < 0 ? error_message(&error, r) : "", cases[i].verdict);
                manifest_objects_done(&objects);
        }
}

TEST(pods_may_refer_to_classes_that_appear_later)
{
        ManifestObjects objects = parse_ok(POD "  priorityClassName: high\n"
                                               "  runtimeClassName: kata\n");

        REQUIRE(objects.pods.n == 1);
        EXPECT_STREQ(objects.pods.items[0]->spec.priority_class_name, "high");
        EXPECT(!objects.pods.items[0]->spec.priority.is_set);
        EXPECT_STREQ(objects.pods.items[0]->spec.runtime_class_name, "kata");
        manifest_objects_done(&objects);
}
