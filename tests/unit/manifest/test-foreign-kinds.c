/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/manifest.h"

#include "common/cleanup.h"
#include "common/strv.h"
#include "tests/test.h"

#include <stdio.h>

#define POD                                                \
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n" \
        "spec: {containers: [{name: c, image: i}]}\n---\n"
#define RUNS "it runs Pod, DaemonSet, ConfigMap, Secret, PriorityClass, RuntimeClass and List"

/* Returns the warnings or the error of a file, and the number of its pods. */
static void expect_pods(const char *yaml, size_t n_pods, const char *verdict) {
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error);

        EXPECT_EQ(objects.pods.n, n_pods);
        EXPECT_EQ(strv_length(objects.warnings), r < 0 ? 0 : 1);
        EXPECT_STREQ(r < 0 ? error_message(&error, r) : objects.warnings[0], verdict);
        manifest_objects_done(&objects);
}

TEST(kinds_of_a_cluster_are_skipped_with_one_warning)
{
        expect_pods("apiVersion: v1\nkind: ServiceAccount\n---\n" POD
                    "apiVersion: rbac.authorization.k8s.io/v1beta1\nkind: ClusterRole\n---\n"
                    "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n",
                    1, "f: skips ServiceAccount and ClusterRole, which a node does not run; " RUNS);
        expect_pods(POD "apiVersion: v1\nkind: List\nitems:\n"
                        "- {apiVersion: v1, kind: Service}\n"
                        "- {apiVersion: policy/v1, kind: PodDisruptionBudget}\n",
                    1,
                    "f: skips Service and PodDisruptionBudget, which a node does not run; " RUNS);
        expect_pods(POD "{apiVersion: v1, kind: ServiceList, items: []}", 1,
                    "f: skips ServiceList, which a node does not run; " RUNS);
}

TEST(daemonsets_for_windows_are_skipped_with_the_paths_that_linux_does_not_have)
{
        static const char *const places[] = { "nodeSelector: {kubernetes.io/os: windows}",
                                              "nodeSelector: {beta.kubernetes.io/os: windows}",
                                              "os: {name: windows}" };
        static const char set[] = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\n"
                                  "spec: {template: {spec: {%s,\n"
                                  "  volumes: [{name: v, hostPath: {path: 'C:\\'}}]}}}\n---\n" POD;

        for (size_t i = 0; i <= N_ELEMENTS(places); i++) {
                cleanup_free char *yaml = NULL;
                bool is_linux = i == N_ELEMENTS(places);

                REQUIRE(asprintf(&yaml, set,
                                 is_linux ? "nodeSelector: {kubernetes.io/os: linux}" : places[i]) >
                        0);
                expect_pods(
                        yaml, is_linux ? 0 : 1,
                        is_linux
                                ? "f:5:40: spec.template.spec.volumes[0].hostPath.path: must be an "
                                  "absolute path, not 'C:\\'"
                                : "f: skips DaemonSet for Windows, which a node does not "
                                  "run; " RUNS);
        }
}

TEST(a_file_with_only_skipped_kinds_runs_no_pod)
{
        expect_pods("{apiVersion: v1, kind: Namespace}", 0,
                    "f: skips Namespace, which a node does not run; " RUNS);
}

TEST(a_kind_that_a_node_reads_is_skipped_in_other_versions)
{
        expect_pods(POD "{apiVersion: config/v1, kind: ConfigMap}", 1,
                    "f: skips ConfigMap of config/v1, which a node does not run; " RUNS);
}

TEST(custom_resources_are_skipped_if_their_definition_is_in_the_file)
{
        static const char definition[] =
                "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
                "spec: {group: example.com, names: {kind: Widget}}\n---\n";
        cleanup_free char *own = NULL, *other = NULL;

        REQUIRE(asprintf(&own, "{apiVersion: example.com/v2, kind: Widget}\n---\n%s" POD,
                         definition) > 0);
        expect_pods(
                own, 1,
                "f: skips Widget and CustomResourceDefinition, which a node does not run; " RUNS);
        REQUIRE(asprintf(&other, "%s{apiVersion: example.org/v1, kind: Widget}", definition) > 0);
        expect_pods(other, 0, "f:5:36: kind: is Widget, which a node does not run; " RUNS);
        expect_pods(POD "{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor}", 1,
                    "f: skips ServiceMonitor, which a node does not run; " RUNS);
}

TEST(definitions_apply_in_nested_lists_and_to_lists_of_their_kind)
{
        expect_pods(POD "apiVersion: v1\nkind: List\nitems:\n"
                        "- {apiVersion: v1, kind: List, items: [\n"
                        "   {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,\n"
                        "    spec: {group: example.com, names: {kind: Widget}}},\n"
                        "   {apiVersion: example.com/v1, kind: Widget},\n"
                        "   {apiVersion: example.com/v1, kind: WidgetList, items: []}]}\n",
                    1,
                    "f: skips CustomResourceDefinition, Widget and WidgetList, which a node does "
                    "not run; " RUNS);
}

TEST(a_definition_does_not_cause_a_workload_to_be_skipped)
{
        static const char definition[] =
                "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, "
                "spec: {group: %s, names: {kind: %s}}}\n---\n{apiVersion: %s/v1, kind: %s}\n";
        static const char *const kinds[][2] = { { "apps", "Deployment" },
                                                { "batch", "Job" },
                                                { "batch.volcano.sh", "Job" },
                                                { "apps", "Widget" } };

        for (size_t i = 0; i < N_ELEMENTS(kinds); i++) {
                const char *group = kinds[i][0], *kind = kinds[i][1];
                ManifestObjects objects = { 0 };
                cleanup_error Error error = ERROR_NULL;
                cleanup_free char *yaml = NULL;

                REQUIRE(asprintf(&yaml, definition, group, kind, group, kind) > 0);
                EXPECT_EQ(manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error),
                          -EINVAL);
                EXPECT(strstr(strna(error.message), kind));
                manifest_objects_done(&objects);
        }
}

TEST(lists_of_workloads_are_errors_with_the_same_advice)
{
        expect_pods(POD "{apiVersion: apps/v1, kind: DeploymentList, items: []}", 0,
                    "f:6:29: kind: is DeploymentList, which only a controller of a cluster runs; "
                    "delete it, or make its template a Pod or a DaemonSet; a node runs Pod, "
                    "DaemonSet, ConfigMap, Secret, PriorityClass, RuntimeClass and List");
        expect_pods(POD "{apiVersion: example.com/v1, kind: ConfigMapList, items: []}", 1,
                    "f: skips ConfigMapList of example.com/v1, which a node does not run; " RUNS);
        expect_pods(POD "{apiVersion: v2, kind: PodList, items: []}", 0,
                    "f:6:14: apiVersion: must be v1 for a PodList, not 'v2'");
}

/* The items need not repeat fields of the list. */
TEST(typed_lists_of_supported_kinds_are_read)
{
        static const char yaml[] =
                "{apiVersion: v1, kind: ConfigMapList, items: [{metadata: {name: a}}]}\n---\n"
                "{apiVersion: v1, kind: SecretList, items: [{metadata: {name: a}}]}\n---\n"
                "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClassList, items: [\n"
                "  {metadata: {name: a}, value: 1}]}\n---\n"
                "{apiVersion: node.k8s.io/v1, kind: RuntimeClassList, items: [\n"
                "  {metadata: {name: a}, handler: a}]}\n---\n"
                "apiVersion: apps/v1\nkind: DaemonSetList\nitems:\n"
                "- metadata: {name: d}\n  spec:\n    selector: {matchLabels: {a: b}}\n"
                "    template:\n      metadata: {labels: {a: b}}\n"
                "      spec: {containers: [{name: c, image: i}]}\n";
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error), 0);
        EXPECT_STREQ(strna(error.message), "");
        EXPECT_EQ(objects.data.n, 4);
        EXPECT_EQ(objects.daemonsets.n, 1);
}

/* A Service of Knative is a workload. */
TEST(kinds_of_other_groups_are_not_confused_with_those_of_kubernetes)
{
        expect_pods(POD "{apiVersion: serving.knative.dev/v1, kind: Service}", 0,
                    "f:6:44: kind: is Service, which a node does not run; " RUNS);
        expect_pods(POD "{apiVersion: management.example.com/v3, kind: NodeList}", 0,
                    "f:6:47: kind: is NodeList, which a node does not run; " RUNS);
        expect_pods(POD "{apiVersion: evilk8s.io/v1, kind: Role}", 0,
                    "f:6:35: kind: is Role, which a node does not run; " RUNS);
        expect_pods(POD "{apiVersion: authorization.openshift.io/v1, kind: Role}", 1,
                    "f: skips Role, which a node does not run; " RUNS);
}

TEST(definitions_of_any_form_are_tolerated)
{
        static const char *const specs[] = { "", "spec: 1", "spec: {names: []}",
                                             "spec: {names: {kind: 1}, group: x}",
                                             "spec: {names: {kind: Pod}}" };

        for (size_t i = 0; i < N_ELEMENTS(specs); i++) {
                cleanup_free char *yaml = NULL;

                REQUIRE(asprintf(&yaml,
                                 POD "apiVersion: x/v1\nkind: CustomResourceDefinition\n%s\n",
                                 specs[i]) > 0);
                expect_pods(yaml, 1,
                            "f: skips CustomResourceDefinition, which a node does not run; " RUNS);
        }
}

TEST(workloads_and_unknown_kinds_are_errors_of_the_file)
{
        static const char *const workloads[] = {
                "Deployment",       "StatefulSet",          "Job", "CronJob", "ReplicaSet",
                "DeploymentConfig", "ReplicationController"
        };

        for (size_t i = 0; i < N_ELEMENTS(workloads); i++) {
                ManifestObjects objects = { 0 };
                cleanup_error Error error = ERROR_NULL;
                cleanup_free char *yaml = NULL;

                REQUIRE(asprintf(&yaml, POD "apiVersion: apps/v1\nkind: %s\n", workloads[i]) > 0);
                EXPECT_EQ(manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error),
                          -EINVAL);
                EXPECT(strstr(strna(error.message), "make its template a Pod"));
                EXPECT(strstr(strna(error.message),
                              "Pod, DaemonSet, ConfigMap, Secret, PriorityClass, RuntimeClass"));
                EXPECT_EQ(objects.pods.n, 0);
                manifest_objects_done(&objects);
        }
        expect_pods(POD "{apiVersion: v1, kind: Pot}", 0,
                    "f:6:24: kind: is Pot, which a node does not run; " RUNS);
}

TEST(the_warning_names_a_limited_number_of_kinds)
{
        cleanup_free char *yaml = NULL;
        size_t size;
        FILE *out = open_memstream(&yaml, &size);
        ManifestObjects objects = { 0 };

        REQUIRE(out);
        for (int i = 0; i < 1000; i++)
                fprintf(out, "{apiVersion: cilium.io/v2, kind: K%d}\n---\n", i);
        REQUIRE(fclose(out) == 0);
        REQUIRE(manifest_parse("f", yaml, strlen(yaml), "node1", &objects, NULL) == 0);
        EXPECT(strstr(objects.warnings[0], "K22, K23 and others, which a node does not run"));
        manifest_objects_done(&objects);
}
