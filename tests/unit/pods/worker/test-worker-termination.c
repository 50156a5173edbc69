/* SPDX-License-Identifier: Apache-2.0 */
/* How pods are stopped: grace periods, failures of whole pods, the shutdown of the node, draining.
 */

#include "tests/unit/pods/worker/fake-node.h"

#include "agent/pods/manager/node-shutdown-manager.h"
#include "common/cleanup.h"
#include "common/text.h"

#include <signal.h>

#define READY "Running Ready | app running ready"
#define GRACE "  terminationGracePeriodSeconds: %d\n"

/* A pod whose container ends only by SIGKILL. */
static FakeNode *new_stubborn_node(const char *yaml) {
        FakeNode *node = fake_node_new();

        fake_container("app")->ignores_signal = true;
        fake_node_apply(node, yaml);
        fake_container("app")->ignores_signal = false;
        EXPECT_STREQ(fake_node_status(node, "web"), READY);
        (void) fake_requests();
        (void) fake_node_pod_events(node);
        return node;
}

TEST(shortest_grace_period_of_several_deletions_applies)
{
        cleanup_with(fake_node_freep) FakeNode *node = new_stubborn_node(POD(APP));
        static const NodeStep steps[] = {
                { 0, "delete web -1", "stop app/0 signal 15 kill 30\n", NULL },
                { 5, "delete web 10", "stop app/0 signal 15 kill 10\n", NULL },
                { 1, "delete web 20", "stop app/0 signal 15 kill 10\n", NULL },
                { 8, "", "", "Running deleted Ready | app running ready" },
                { 1, "", "teardown\ncleanup of everything\n", "gone" },
        };

        PLAY(node, steps);
}

TEST(a_deleted_pod_that_is_still_desired_starts_again_as_a_new_instance)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL, POD(APP) },
                { 1, "delete web 0",
                  "stop app/0 signal 15 kill 2\nteardown\ncleanup of everything\n", "gone" },
                { 0, "apply", "start\nsetup\nrun app/0\n", READY, POD(APP) },
        };

        PLAY(node, steps);
}

TEST(a_successor_waits_until_its_predecessor_is_removed)
{
        cleanup_with(fake_node_freep) FakeNode *node = new_stubborn_node(POD(APP));
        static const NodeStep steps[] = {
                { 0, "delete web 5", NULL, NULL },
                { 1, "apply", "", NULL, POD(APP_WITH("command: [other]")) },
                { 4, "", "teardown\ncleanup of everything\nstart\nsetup\nrun app/0\n", READY },
        };

        PLAY(node, steps);
}

TEST(an_evicted_pod_has_failed_and_starts_again_when_the_pressure_is_over)
{
        cleanup_with(fake_node_freep) FakeNode *node = new_stubborn_node(POD(APP));
        static const NodeStep steps[] = {
                { 0, "evict web", "stop app/0 signal 15 kill 2\n", "Running | app running ready" },
                { 2, "", "teardown\ncleanup of the sandbox\n",
                  "Failed Evicted | app ended Error 137" },
                { 100, "agent restarts", NULL, "Failed Evicted | app ended Error 137" },
        };

        PLAY(node, steps);
        EXPECT_STREQ(fake_node_pod_events(node), "Evicted Killing");
        EXPECT(pod_manager_last_evicted_at(node->manager, NODE_MEMORY_PRESSURE) > 0);
        EXPECT_EQ(pod_manager_last_evicted_at(node->manager, NODE_DISK_PRESSURE), 0);
        node->conditions.set = NODE_CONDITION_BIT(NODE_MEMORY_PRESSURE);
        pod_manager_readmit_evicted(node->manager);
        fake_node_run(node);
        EXPECT_STREQ(fake_node_status(node, "web"), "Failed Evicted | app ended Error 137");
        node->conditions.set = 0;
        pod_manager_readmit_evicted(node->manager);
        fake_node_run(node);
        EXPECT_STREQ(fake_node_status(node, "web"), "gone");
}

TEST(a_pod_fails_at_its_deadline_whatever_the_agent_did)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, READY, POD("  activeDeadlineSeconds: 100\n" APP) },
                { 50, "agent restarts", "connect\n", READY },
                { 49, "", "", READY },
                { 2, "", "stop app/0 signal 15 kill 30\nteardown\ncleanup of the sandbox\n",
                  "Failed DeadlineExceeded | app ended Error 143" },
        };

        PLAY(node, steps);
        EXPECT_STREQ(fake_node_pod_events(node), "Pulled Created Started DeadlineExceeded Killing");
}

TEST(the_time_of_a_deadline_passes_however_the_clock_is_set)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_node_apply(node, POD("  activeDeadlineSeconds: 100\n" APP));
        fake_clock_set(-1000 * (int64_t) USEC_PER_SEC);
        fake_node_pass(node, 99 * USEC_PER_SEC);
        EXPECT_STREQ(fake_node_status(node, "web"), READY);
        fake_clock_set(1000 * (int64_t) USEC_PER_SEC);
        fake_node_pass(node, 2 * USEC_PER_SEC);
        EXPECT_STREQ(fake_node_status(node, "web"),
                     "Failed DeadlineExceeded | app ended Error 143");
}

TEST(a_pod_that_writes_more_than_its_limit_is_evicted)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_children.output = "100\n0\n0\n0\n";
        fake_node_apply(
                node,
                POD(APP_WITH(
                        "volumeMounts: [{name: data, mountPath: /data}]") "  volumes: [{name: "
                                                                          "data, emptyDir: "
                                                                          "{sizeLimit: 1Ki}}]\n"));
        (void) fake_requests();
        fake_node_pass(node, 11 * USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), "child mainstay-shim usage\n");
        fake_children.output = "5000\n0\n0\n0\n";
        fake_node_pass(node, 11 * USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(),
                     "child mainstay-shim usage\nstop app/0 signal 15 kill 2\nteardown\n"
                     "cleanup of the sandbox\n");
        EXPECT_STREQ(fake_node_status(node, "web"), "Failed Evicted | app ended Error 143");
        EXPECT_STREQ(node->last_message, "Stopping container app");
}

TEST(a_measurement_that_fails_is_repeated)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_children.status = 1;
        fake_node_apply(node, POD(APP_WITH("resources: {limits: {ephemeral-storage: 1Ki}}")));
        (void) fake_requests();
        fake_node_pass(node, 21 * USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), "child mainstay-shim usage\nchild mainstay-shim usage\n");
        EXPECT_STREQ(fake_node_status(node, "web"), READY);
}

/* ---- the shutdown of the node ---- */

static bool has_shut_down;

static void on_shut_down(void *userdata) {
        has_shut_down = true;
}

static const ShutdownStage stages[] = { { .priority = 0, .period_usec = 10 * USEC_PER_SEC },
                                        { .priority = 1000, .period_usec = 5 * USEC_PER_SEC } };

TEST(a_shutdown_stops_pods_by_priority_and_nothing_starts_until_it_is_cancelled)
{
        cleanup_with(fake_node_freep) FakeNode *node = new_stubborn_node(POD(APP));
        static const NodeStep stopped[] = {
                { 9, "", "", "Running | app running ready" },
                { 2, "", "teardown\ncleanup of the sandbox\n",
                  "Failed Terminated | app ended Error 137" },
        };

        has_shut_down = false;
        pod_manager_shut_down(node->manager, stages, N_ELEMENTS(stages), on_shut_down, node);
        fake_node_run(node);
        EXPECT_STREQ(fake_requests(), "stop app/0 signal 15 kill 10\n");
        EXPECT(pod_manager_is_shutting_down(node->manager));
        PLAY(node, stopped);
        EXPECT(has_shut_down);
        fake_node_apply(node, "apiVersion: v1\nkind: Pod\nmetadata: {name: late}\nspec:\n"
                              "  hostNetwork: true\n" APP);
        EXPECT_STREQ(fake_requests(), "");
        EXPECT_STREQ(fake_node_pod_events(node), "Killing NodeShutdown");
        pod_manager_cancel_shutdown(node->manager);
        fake_node_run(node);
        EXPECT_EQ(fake_count_processes("app"), 2);
        EXPECT_STREQ(fake_node_status(node, "web"),
                     "Running Ready | app running ready (1) after 137");
}

TEST(an_early_cancelled_shutdown_waits_for_containers_that_are_being_stopped)
{
        cleanup_with(fake_node_freep) FakeNode *node = new_stubborn_node(POD(APP));

        pod_manager_shut_down(node->manager, stages, N_ELEMENTS(stages), on_shut_down, node);
        fake_node_run(node);
        pod_manager_cancel_shutdown(node->manager);
        fake_node_pass(node, 3 * USEC_PER_SEC);
        EXPECT_EQ(fake_count_processes("app"), 1);
        fake_node_pass(node, 10 * USEC_PER_SEC);
        EXPECT_STREQ(fake_node_status(node, "web"),
                     "Running Ready | app running ready (1) after 137");
}

TEST(pods_that_start_after_others_stop_before_them)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_node_apply(node, "apiVersion: v1\nkind: Pod\nmetadata: {name: front, annotations: "
                              "{mainstay.dev/after: web}}\nspec:\n  hostNetwork: true\n"
                              "  containers: [{name: front, image: busybox}]\n---\n" POD(
                                      APP_WITH("readinessProbe: {exec: {command: ['true']}, "
                                               "initialDelaySeconds: 5}")));
        EXPECT_STREQ(fake_requests(), "start\nsetup\nrun app/0\n");
        EXPECT_STREQ(fake_node_status(node, "front"), "Pending | front waiting WaitingForPods");
        fake_node_pass(node, 6 * USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), "start\nsetup\nrun front/0\n");
        pod_manager_shut_down(node->manager, stages, N_ELEMENTS(stages), on_shut_down, node);
        fake_node_run(node);
        EXPECT_STREQ(fake_requests(),
                     "stop front/0 signal 15 kill 5\nteardown\ncleanup of the sandbox\n"
                     "stop app/0 signal 15 kill 5\nteardown\ncleanup of the sandbox\n");
}

TEST(pods_that_wait_for_one_another_report_it)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_node_apply(node, "apiVersion: v1\nkind: Pod\nmetadata: {name: front, annotations: "
                              "{mainstay.dev/after: web}}\nspec:\n  hostNetwork: true\n" APP "---\n"
                              "apiVersion: v1\nkind: Pod\nmetadata: {name: web, annotations: "
                              "{mainstay.dev/after: front}}\nspec:\n  hostNetwork: true\n" APP);
        EXPECT_STREQ(fake_requests(), "");
        EXPECT_STREQ(fake_node_status(node, "web"), "Pending | app waiting WaitingForPods");
        fake_node_apply(node, POD(APP));
        EXPECT_EQ(fake_count_processes("app"), 2);
}

/* ---- the node's shutdown manager ---- */

typedef struct ShutdownWorld {
        FakeNode *node;
        ServiceNotifier *notifier;
        NodeShutdownManager *manager;
        unsigned n_terminating;
        int shutting_down;
} ShutdownWorld;

static void on_agent_terminating(void *userdata) {
        ShutdownWorld *world = userdata;

        world->n_terminating++;
}

static void on_node_shutting_down(bool is_shutting_down, void *userdata) {
        ShutdownWorld *world = userdata;

        world->shutting_down += is_shutting_down ? 1 : -1;
}

static void shutdown_world_init(ShutdownWorld *world, size_t n_stages) {
        *world = (ShutdownWorld){ .node = new_stubborn_node(POD(APP)) };
        world->notifier = service_notifier_new();
        REQUIRE(world->notifier);
        REQUIRE(node_shutdown_manager_new(
                        &(NodeShutdownConfig){ .event = world->node->event,
                                               .pod_manager = world->node->manager,
                                               .systemd = (SystemdClient *) (uintptr_t) world,
                                               .notifier = world->notifier,
                                               .stages = stages,
                                               .n_stages = n_stages,
                                               .on_terminating = on_agent_terminating,
                                               .on_shutting_down = on_node_shutting_down,
                                               .userdata = world },
                        &world->manager) >= 0);
        REQUIRE(node_shutdown_manager_start(world->manager) >= 0);
}

static void shutdown_world_done(ShutdownWorld *world) {
        node_shutdown_manager_free(world->manager);
        service_notifier_free(world->notifier);
        fake_node_free(world->node);
}

TEST(logind_waits_until_all_pods_have_stopped)
{
        ShutdownWorld world;

        shutdown_world_init(&world, N_ELEMENTS(stages));
        fake_logind_announce(true);
        fake_node_run(world.node);
        EXPECT_EQ(world.shutting_down, 1);
        EXPECT_STREQ(fake_requests(), "stop app/0 signal 15 kill 10\n");
        fake_logind_announce(false);
        fake_logind_announce(false);
        EXPECT_EQ(world.shutting_down, 0);
        fake_logind_announce(true);
        fake_node_pass(world.node, 20 * USEC_PER_SEC);
        EXPECT(strstr(fake_requests(), "shutdown may continue\n"));
        shutdown_world_done(&world);
}

TEST(a_stopped_agent_leaves_its_pods_running)
{
        ShutdownWorld world;
        int code;

        shutdown_world_init(&world, N_ELEMENTS(stages));
        REQUIRE(raise(SIGTERM) == 0);
        EXPECT_EQ(sd_event_loop(world.node->event), 0);
        EXPECT_EQ(sd_event_get_exit_code(world.node->event, &code), 0);
        EXPECT_EQ(world.n_terminating, 1);
        EXPECT_EQ(fake_count_processes("app"), 1);
        shutdown_world_done(&world);
}

TEST(an_agent_that_is_stopped_with_the_machine_stops_its_pods)
{
        ShutdownWorld world;

        shutdown_world_init(&world, N_ELEMENTS(stages));
        fake_systemd_is_stopping = true;
        REQUIRE(raise(SIGTERM) == 0);
        for (unsigned i = 0; i < 400 && sd_event_get_state(world.node->event) != SD_EVENT_FINISHED;
             i++) {
                while (sd_event_get_state(world.node->event) != SD_EVENT_FINISHED &&
                       sd_event_run(world.node->event, 0) > 0)
                        ;
                fake_clock_pass(50 * USEC_PER_MSEC);
        }
        EXPECT_EQ(fake_count_processes("app"), 0);
        shutdown_world_done(&world);
}
