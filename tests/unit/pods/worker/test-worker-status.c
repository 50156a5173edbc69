/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a pod: phase, conditions, addresses, and their transition times. */

#include "tests/unit/pods/worker/fake-node.h"

#include "common/cleanup.h"
#include "common/text.h"

static const PodStatus *get_status(FakeNode *node) {
        cleanup_free char *uid = fake_node_uid(node, "web");
        const PodStatus *status = pod_manager_pod_status(node->manager, uid);

        REQUIRE(status);
        return status;
}

/* Returns the conditions that are not as expected of a running pod, such as "Initialized=False
 * (ContainersNotInitialized) …". */
static char *print_conditions(FakeNode *node) {
        const PodStatus *status = get_status(node);
        char *text = strdup("");

        for (PodConditionType type = 0; type < N_POD_CONDITIONS; type++) {
                const PodCondition *condition = &status->conditions[type];

                /* Temporary conditions are listed while they are true, all others while they are
                 * not true. */
                if (condition->is_true == pod_condition_is_passing(type) &&
                    type != CONDITION_ALL_CONTAINERS_RESTARTING)
                        REQUIRE(text_appendf(&text, "%s%s%s%s%s", text[0] ? "; " : "",
                                             condition->is_true ? "" : "not ",
                                             pod_condition_names[type],
                                             condition->reason ? ": " : "",
                                             strna(condition->reason)) >= 0);
        }
        return text;
}

static void expect_conditions(FakeNode *node, const char *expected) {
        cleanup_free char *text = print_conditions(node);

        EXPECT_STREQ(text, expected);
}

TEST(conditions_follow_the_pod_from_its_sandbox_to_its_end)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_shims.setup_hangs = true;
        fake_node_apply(node, POD("  restartPolicy: Never\n"
                                  "  initContainers: [{name: first, image: busybox}]\n" APP));
        expect_conditions(node, "not PodReadyToStartContainers; not Initialized: "
                                "ContainersNotInitialized; not Ready: ContainersNotReady; not "
                                "ContainersReady: ContainersNotReady");
        fake_shims_die();
        fake_shims.setup_hangs = false;
        fake_node_pass(node, 2 * USEC_PER_SEC);
        expect_conditions(node, "not Initialized: ContainersNotInitialized; not Ready: "
                                "ContainersNotReady; not ContainersReady: ContainersNotReady");
        fake_container_exit("first", 0);
        fake_node_run(node);
        expect_conditions(node, "");
        fake_container_exit("app", 0);
        fake_node_run(node);
        expect_conditions(node, "not PodReadyToStartContainers; not Ready: PodCompleted; not "
                                "ContainersReady: PodCompleted");
}

TEST(a_condition_keeps_the_time_of_its_last_change)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        uint64_t before;

        fake_node_apply(node, POD(APP));
        before = now_realtime_usec();
        for (unsigned i = 0; i < 2; i++) {
                fake_node_pass(node, 100 * USEC_PER_SEC);
                EXPECT_EQ(get_status(node)->conditions[CONDITION_READY].last_transition, before);
                EXPECT_EQ(get_status(node)->start_time, before);
                pod_manager_on_node_changed(node->manager);
        }
        fake_container("app")->run = RUN_HANGS;
        fake_container_exit("app", 1);
        fake_node_run(node);
        EXPECT(!get_status(node)->conditions[CONDITION_READY].is_true);
        EXPECT_EQ(get_status(node)->conditions[CONDITION_READY].last_transition,
                  now_realtime_usec());
        fake_container("app")->run = RUN_STARTS;
}

TEST(a_status_has_a_new_version_only_if_it_has_changed)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        const PodStatus *first, *second;

        fake_node_apply(node, POD(APP));
        first = pod_status_ref(get_status(node));
        pod_manager_on_node_changed(node->manager);
        fake_node_pass(node, 100 * USEC_PER_SEC);
        EXPECT(get_status(node) == first);
        fake_container_exit("app", 1);
        fake_node_run(node);
        second = get_status(node);
        EXPECT(second->version > first->version);
        /* A reference to the old status still shows the old values. */
        EXPECT_EQ(first->containers.items[0].restart_count, 0);
        EXPECT_EQ(second->containers.items[0].restart_count, 1);
        EXPECT(!pod_status_equal(first, second));
        pod_status_unref(first);
}

TEST(a_readiness_gate_waits_for_a_condition_of_another_writer)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        cleanup_free char *uid = NULL;
        StringMap conditions = { 0 };

        fake_node_apply(node, POD("  readinessGates: [{conditionType: example.org/ok}]\n" APP));
        expect_conditions(node, "not Ready: ReadinessGatesNotReady");
        uid = fake_node_uid(node, "web");
        REQUIRE(string_map_set(&conditions, "example.org/ok", "False") >= 0);
        pod_manager_set_external_conditions(node->manager, uid, &conditions);
        fake_node_run(node);
        expect_conditions(node, "not Ready: ReadinessGatesNotReady");
        REQUIRE(string_map_set(&conditions, "example.org/ok", "True") >= 0);
        pod_manager_set_external_conditions(node->manager, uid, &conditions);
        fake_node_run(node);
        expect_conditions(node, "");
        string_map_done(&conditions);
}

TEST(addresses_are_those_of_the_network_and_stay_with_a_completed_pod)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        const char *const expected[] = { "10.88.0.7", "10.88.0.7" };

        fake_node_apply(node, POD_HEAD "  restartPolicy: Never\n" APP);
        for (size_t i = 0; i < N_ELEMENTS(expected); i++) {
                EXPECT_STREQ(get_status(node)->pod_ip, expected[i]);
                EXPECT_STREQ(get_status(node)->host_ip, "192.0.2.1");
                if (i == 0)
                        fake_container_exit("app", 0);
                fake_node_run(node);
        }
        EXPECT_STREQ(fake_requests(), "start with a network\nsetup\nplugin ADD\nrun app/0\nplugin "
                                      "DEL\nteardown\ncleanup of a completed pod\n");
}

TEST(a_pull_shows_its_progress)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_image_set("busybox", IMAGE_PULLING);
        fake_node_apply(node, POD(APP));
        EXPECT_STREQ(get_status(node)->containers.items[0].state.message,
                     "Pulling image: 1.0 of 2.0 MiB");
        fake_image_set("busybox", IMAGE_PRESENT);
}

#define BOUND(name)                                                                                \
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name                   \
        "\",\"namespace\":\"default\",\"uid\":\"00000000-0000-0000-0000-000000000001\"},\"spec\":" \
        "{"                                                                                        \
        "\"hostNetwork\":true,\"nodeName\":\"node1\",\"containers\":[{\"name\":\"app\",\"image\":" \
        "\"busybox\"}]}}"

/* Another pod has the UID of this pod. */
TEST(a_pod_that_is_not_started_reports_the_reason)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        const PodStatus *status;
        const Pod *pod;

        fake_node_bind(node, BOUND("first"));
        fake_node_bind(node, BOUND("web"));
        EXPECT_STREQ(fake_node_status(node, "first"), "Running Ready | app running ready");
        REQUIRE(pod_manager_next_pod(node->manager, "default/first/zzz", &pod, &status));
        EXPECT_STREQ(pod->metadata.name, "web");
        EXPECT_STREQ(status->message, "its UID is that of pod default/first");
        pod_manager_drop_successor(node->manager, &pod->metadata);
        fake_node_run(node);
        EXPECT_STREQ(fake_node_status(node, "web"), "gone");
}
