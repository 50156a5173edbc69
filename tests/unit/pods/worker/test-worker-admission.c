/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods the node admits, and what happens to the others. */

#include "tests/unit/pods/worker/fake-node.h"

#include "agent/model/node-usage.h"
#include "common/cleanup.h"
#include "common/text.h"

#define READY "Running Ready | app running ready"

TEST(a_pod_whose_node_selector_does_not_match_starts_when_it_does)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_node_apply(node, POD("  nodeSelector: {disk: fast}\n" APP));
        fake_node_pass(node, 6 * USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), "");
        EXPECT_STREQ(fake_node_status(node, "web"), "Failed NodeAffinity");
        REQUIRE(string_map_set(&node->labels.labels, "disk", "fast") >= 0);
        pod_manager_on_node_changed(node->manager);
        fake_node_run(node);
        EXPECT_STREQ(fake_node_status(node, "web"), READY);
        /* A running pod is not checked again. */
        REQUIRE(string_map_set(&node->labels.labels, "disk", "slow") >= 0);
        pod_manager_on_node_changed(node->manager);
        fake_node_pass(node, 60 * USEC_PER_SEC);
        EXPECT_STREQ(fake_node_status(node, "web"), READY);
}

static const struct {
        NodeCondition condition;
        const char *spec, *status;
} pressure_rows[] = {
        { NODE_MEMORY_PRESSURE, APP, "Failed Evicted" },
        { NODE_MEMORY_PRESSURE, APP_WITH("resources: {requests: {memory: 1Mi}}"), READY },
        { NODE_DISK_PRESSURE, APP_WITH("resources: {requests: {memory: 1Mi}}"), "Failed Evicted" },
        { NODE_PID_PRESSURE, APP, "Failed Evicted" },
        { NODE_PID_PRESSURE, "  priorityClassName: system-node-critical\n" APP, READY },
        { NODE_MEMORY_PRESSURE,
          "  tolerations: [{key: node.kubernetes.io/memory-pressure, operator: Exists}]\n" APP,
          READY },
};

TEST(node_pressure_keeps_pods_from_starting)
{
        for (size_t i = 0; i < N_ELEMENTS(pressure_rows); i++) {
                cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
                cleanup_free char *yaml = text_format(POD("%s"), pressure_rows[i].spec);

                node->conditions.set = NODE_CONDITION_BIT(pressure_rows[i].condition);
                fake_node_apply(node, yaml);
                EXPECT_STREQ(fake_node_status(node, "web"), pressure_rows[i].status);
                node->conditions.set = 0;
                pod_manager_on_node_changed(node->manager);
                fake_node_run(node);
                EXPECT_STREQ(fake_node_status(node, "web"), READY);
        }
}

#define PORT "ports: [{containerPort: 80, hostPort: 8080}]"

TEST(a_pod_waits_for_a_host_port_that_another_pod_uses)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_node_apply(node, "apiVersion: v1\nkind: Pod\nmetadata: {name: first}\nspec:\n"
                              "  containers: [{name: one, image: busybox, " PORT "}]\n");
        fake_node_apply(node, POD_HEAD APP_WITH(PORT));
        EXPECT_STREQ(fake_node_status(node, "web"), "Failed NodePorts");
        EXPECT_EQ(pod_manager_delete_pod(node->manager, "default", "first-node1", -1, "test", NULL),
                  0);
        fake_node_run(node);
        EXPECT_STREQ(fake_node_status(node, "web"), READY);
}

/* ---- pods of an API server ---- */

#define API_POD(name, uid, more)                                                              \
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name              \
        "\",\"namespace\":\"default\",\"uid\":\"" uid "\"},\"spec\":{\"hostNetwork\":true,"   \
        "\"nodeName\":\"node1\",\"containers\":[{\"name\":\"app\",\"image\":\"busybox\"" more \
        "}]}}"
#define CPU(n) ",\"resources\":{\"requests\":{\"cpu\":\"" n "\"}}"

TEST(an_api_server_pod_that_does_not_fit_fails_permanently)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_node_bind(node, API_POD("first", "00000000-0000-0000-0000-000000000001", CPU("3")));
        EXPECT_STREQ(fake_node_status(node, "first"), READY);
        fake_node_bind(node, API_POD("web", "00000000-0000-0000-0000-000000000002", CPU("2")));
        EXPECT_STREQ(fake_node_status(node, "web"), "Failed OutOfcpu");
        EXPECT_EQ(pod_manager_delete_pod(node->manager, "default", "first", -1, "test", NULL), 0);
        fake_node_run(node);
        EXPECT_STREQ(fake_node_status(node, "first"), "gone");
        EXPECT_STREQ(fake_node_status(node, "web"), "Failed OutOfcpu");
}

#define CRITICAL                                                                                  \
        "\"priorityClassName\":\"system-node-critical\",\"priority\":2000001000,\"hostNetwork\":" \
        "true"

TEST(a_critical_pod_preempts_a_pod_that_is_not_critical)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        PodManagerCounts counts;

        fake_node_bind(node, API_POD("first", "00000000-0000-0000-0000-000000000001", CPU("3")));
        fake_node_bind(node,
                       "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\","
                       "\"namespace\":\"kube-system\",\"uid\":\"00000000-0000-0000-0000-"
                       "000000000002\"},\"spec\":{" CRITICAL
                       ",\"nodeName\":\"node1\",\"containers\":[{\"name\":\"app\",\"image\":"
                       "\"busybox\"" CPU("2") "}]}}");
        counts = pod_manager_counts(node->manager);
        EXPECT_EQ(counts.preemptions[RESOURCE_CPU], 1);
        EXPECT_STREQ(fake_node_status(node, "first"), "Failed Preempting | app ended Error 143");
        EXPECT_STREQ(fake_node_status(node, "web"), READY);
}

TEST(a_static_pod_takes_the_name_of_an_api_server_pod)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_node_bind(node, API_POD("web-node1", "00000000-0000-0000-0000-000000000001", ""));
        (void) fake_requests();
        fake_node_apply(node, POD(APP));
        EXPECT_STREQ(fake_requests(),
                     "stop app/0 signal 15 kill 10\nteardown\ncleanup of everything\nstart\n"
                     "setup\nrun app/0\n");
}

/* ---- devices ---- */

#define GPUS(n)     "resources: {limits: {example.com/gpu: " n "}}"
#define API_GPUS(n) ",\"resources\":{\"limits\":{\"example.com/gpu\":\"" n "\"}}"
#define API_GPUS_CPU(n) \
        ",\"resources\":{\"limits\":{\"example.com/gpu\":\"" n "\"},\"requests\":{\"cpu\":\"1\"}}"

static void bind_gpu_pods(FakeNode *node) {
        fake_node_set_devices(node, "a b c");
        fake_node_bind(node,
                       API_POD("first", "00000000-0000-0000-0000-000000000001", API_GPUS_CPU("1")));
        fake_node_bind(node,
                       API_POD("second", "00000000-0000-0000-0000-000000000002", API_GPUS("1")));
        fake_node_bind(node,
                       API_POD("third", "00000000-0000-0000-0000-000000000003", API_GPUS("1")));
        EXPECT_STREQ(fake_node_status(node, "first"), READY);
        EXPECT_STREQ(fake_node_status(node, "second"), READY);
        EXPECT_STREQ(fake_node_status(node, "third"), READY);
        fake_node_bind(node,
                       API_POD("fourth", "00000000-0000-0000-0000-000000000004", API_GPUS("1")));
        EXPECT_STREQ(fake_node_status(node, "fourth"), "Failed UnexpectedAdmissionError");
}

TEST(a_static_pod_takes_devices_from_as_few_api_server_pods_as_possible)
{
        static const char *const stopped = "Failed Preempting | app ended Error 143";
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        bind_gpu_pods(node);
        fake_node_apply(node, POD(APP_WITH(GPUS("2"))));
        EXPECT_STREQ(fake_node_status(node, "web"), READY);
        EXPECT_STREQ(fake_node_status(node, "first"), READY); /* it is not BestEffort */
        EXPECT_STREQ(fake_node_status(node, "second"), stopped);
        EXPECT_STREQ(fake_node_status(node, "third"), stopped);
        fake_node_apply(node, "apiVersion: v1\nkind: Pod\nmetadata: {name: other}\nspec:\n"
                              "  hostNetwork: true\n"
                              "  containers: [{name: one, image: busybox, " GPUS("1") "}]\n");
        EXPECT_STREQ(fake_node_status(node, "first"), stopped);
        EXPECT_STREQ(fake_node_status(node, "web"), READY);
}

TEST(no_pod_is_stopped_if_its_devices_would_not_suffice)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        bind_gpu_pods(node);
        fake_node_apply(node, POD(APP_WITH(GPUS("4"))));
        EXPECT_STREQ(fake_node_status(node, "web"), "Failed UnexpectedAdmissionError");
        EXPECT_STREQ(fake_node_status(node, "first"), READY);
        EXPECT_STREQ(fake_node_status(node, "second"), READY);
        EXPECT_STREQ(fake_node_status(node, "third"), READY);
}

TEST(static_pods_keep_their_devices)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_node_set_devices(node, "a");
        fake_node_apply(node, "apiVersion: v1\nkind: Pod\nmetadata: {name: other}\nspec:\n"
                              "  hostNetwork: true\n"
                              "  containers: [{name: one, image: busybox, " GPUS("1") "}]\n");
        fake_node_apply(node, POD(APP_WITH(GPUS("1"))));
        EXPECT_STREQ(fake_node_status(node, "web"), "Failed UnexpectedAdmissionError");
        EXPECT_STREQ(fake_node_status(node, "other"), "Running Ready | one running ready");
        fake_node_bind(node,
                       API_POD("first", "00000000-0000-0000-0000-000000000001", API_GPUS("1")));
        EXPECT_STREQ(fake_node_status(node, "first"), "Failed UnexpectedAdmissionError");
        EXPECT_EQ(pod_manager_delete_pod(node->manager, "default", "other-node1", -1, "test", NULL),
                  0);
        fake_node_run(node);
        EXPECT_STREQ(fake_node_status(node, "web"), READY);
}

TEST(a_pod_waits_for_a_missing_runtime_class)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_node_apply(node, POD("  runtimeClassName: kata\n" APP));
        EXPECT_STREQ(fake_node_status(node, "web"), "Pending | app waiting ContainerCreating");
        EXPECT_STREQ(fake_requests(), "");
        pod_manager_on_objects_changed(node->manager, NULL, NULL);
        fake_node_run(node);
        EXPECT_STREQ(fake_node_pod_events(node), "FailedCreatePodSandBox FailedCreatePodSandBox");
}
