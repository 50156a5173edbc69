/* SPDX-License-Identifier: Apache-2.0 */
/* The state that a restarted agent finds, and its reaction. */

#include "tests/unit/pods/worker/fake-node.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <fcntl.h>
#include <unistd.h>

#define READY "Running Ready | app running ready"

TEST(a_restarted_agent_adopts_running_containers)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL, POD(APP) },
                { 5, "exit app 1", NULL, NULL },
                { 1, "exit app 1", NULL, "Running | app waiting CrashLoopBackOff (1) after 1" },
                { 4, "agent restarts", "connect\n",
                  "Running | app waiting CrashLoopBackOff (1) after 1" },
                { 5, "", "", NULL },
                { 1, "", "run app/2\n", "Running Ready | app running ready (2) after 1" },
                { 1, "stop web", "stop app/2 signal 15 kill 30\nteardown\ncleanup of everything\n",
                  "gone" },
        };

        PLAY(node, steps);
}

TEST(an_exit_that_no_agent_saw_is_not_lost)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_node_apply(node, POD("  restartPolicy: Never\n" APP));
        pod_manager_free(node->manager);
        node->manager = NULL;
        fake_container_exit("app", 7);
        fake_clock_pass(3600 * USEC_PER_SEC);
        fake_node_restart_agent(node);
        fake_node_run(node);
        EXPECT_STREQ(fake_node_status(node, "web"), "Failed | app ended Error 7");
}

TEST(a_container_that_was_being_started_is_not_started_twice)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_container("app")->run = RUN_HANGS;
        fake_node_apply(node, POD(APP));
        (void) fake_requests();
        fake_node_restart_agent(node);
        fake_node_run(node);
        EXPECT_STREQ(fake_requests(), "connect\n");
        fake_container_start_ends("app", SHIM_EVENT_STARTED);
        fake_node_run(node);
        EXPECT_STREQ(fake_node_status(node, "web"), READY);
        fake_container("app")->run = RUN_STARTS;
}

TEST(after_a_reboot_pods_start_again_and_completed_ones_do_not)
{
        static const struct {
                const char *policy, *requests, *status;
        } rows[] = {
                { "Always", "cleanup of the sandbox\nstart\nsetup\nrun app/2\n",
                  "Running Ready | app running ready (2) after 137" },
                { "Never", "cleanup of a completed pod\n", "Succeeded | app ended Completed 0" },
        };

        for (size_t i = 0; i < N_ELEMENTS(rows); i++) {
                cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
                cleanup_free char *yaml =
                        text_format(POD("  restartPolicy: %s\n" APP), rows[i].policy);
                const NodeStep steps[] = {
                        { 0, "apply", NULL, NULL, yaml },
                        { 1, "exit app 0", NULL, NULL },
                        { 1, "machine restarts", rows[i].requests, rows[i].status },
                };

                PLAY(node, steps);
        }
}

/* The policy of the init container permits no restart, although that of the pod does. */
TEST(a_pod_whose_init_container_failed_permanently_does_not_start_again)
{
        static const char *const events[] = { "agent restarts", "machine restarts" };
        static const char status[] = "Failed | first ended Error 9, app waiting PodInitializing";

        for (size_t i = 0; i < N_ELEMENTS(events); i++) {
                cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
                const NodeStep steps[] = {
                        { 0, "apply", NULL, NULL,
                          POD("  initContainers: [{name: first, image: busybox, restartPolicy: "
                              "Never}]\n" APP) },
                        { 1, "exit first 9", "teardown\ncleanup of a completed pod\n", status },
                        { 1, events[i], NULL, status },
                };

                PLAY(node, steps);
        }
}

TEST(a_container_that_ran_at_a_power_cut_has_an_unknown_exit_code)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL, POD(APP) },
                { 100, "machine restarts", "cleanup of the sandbox\nstart\nsetup\nrun app/1\n",
                  "Running Ready | app running ready (1) after 137" },
        };

        PLAY(node, steps);
}

TEST(a_deletion_that_was_under_way_continues)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL, POD(APP) },
                { 1, "delete web 8", "stop app/0 signal 15 kill 8\n", NULL },
                { 3, "agent restarts", NULL, "Running deleted Ready | app running ready" },
                { 9, "", NULL, "gone" },
        };

        fake_container("app")->ignores_signal = true;
        PLAY(node, steps);
        fake_container("app")->ignores_signal = false;
}

TEST(a_shim_that_does_not_answer_is_not_waited_for_by_the_agent)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_shims.hangs = true;
        fake_node_apply(node, POD(APP));
        fake_node_restart_agent(node);
        fake_node_run(node);
        EXPECT(!pod_manager_is_synced(node->manager));
        fake_node_pass(node, 10 * USEC_PER_SEC);
        EXPECT(pod_manager_is_synced(node->manager));
        fake_shims_answer();
        fake_node_run(node);
        EXPECT_STREQ(fake_node_status(node, "web"), READY);
}

TEST(a_damaged_record_is_set_aside_and_its_pod_cleaned_up)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        cleanup_free char *uid = NULL, *path = NULL;
        cleanup_close int fd = -EBADF;

        fake_node_apply(node, POD(APP));
        uid = fake_node_uid(node, "web");
        path = text_format("%s/pods/%s/record", node->state_dir, uid);
        fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
        REQUIRE(fd >= 0 && write_all(fd, "nonsense", 8) >= 0);
        (void) fake_requests();
        fake_node_restart_agent(node);
        fake_node_run(node);
        EXPECT_STREQ(fake_requests(), "");
        pod_manager_remove_leftovers(node->manager);
        fake_node_run(node);
        EXPECT_STREQ(fake_requests(), "connect\nteardown\ncleanup of everything\n");
        EXPECT_EQ(fake_count_shims(), 0);
}

TEST(an_orphaned_pod_with_a_network_gets_a_shim_that_detaches_it)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        cleanup_free char *uid = NULL, *path = NULL;

        fake_node_apply(node, POD_HEAD APP);
        uid = fake_node_uid(node, "web");
        path = text_format("%s/pods/%s/record", node->state_dir, uid);
        REQUIRE(unlink(path) >= 0);
        fake_shims_forget();
        (void) fake_requests();
        fake_node_restart_agent(node);
        pod_manager_remove_leftovers(node->manager);
        fake_node_run(node);
        EXPECT_STREQ(fake_requests(), "start\nplugin DEL\nteardown\ncleanup of everything\n");
}

TEST(an_orphan_whose_shim_does_not_answer_is_killed)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        cleanup_free char *uid = NULL, *path = NULL;

        fake_shims.hangs = true;
        fake_node_apply(node, POD(APP));
        uid = fake_node_uid(node, "web");
        path = text_format("%s/pods/%s/record", node->state_dir, uid);
        REQUIRE(unlink(path) >= 0);
        (void) fake_requests();
        fake_node_restart_agent(node);
        pod_manager_remove_leftovers(node->manager);
        fake_node_pass(node, 11 * USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), "connect\ncleanup of everything\n");
        EXPECT_EQ(fake_count_shims(), 0);
}

TEST(an_adopted_network_is_checked_and_only_reported)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_node_apply(node, POD_HEAD APP);
        (void) fake_requests();
        (void) fake_node_pod_events(node);
        fake_node_restart_agent(node);
        fake_shims.plugin_error = "the interface is gone";
        fake_node_pass(node, USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), "connect\nplugin CHECK\n");
        EXPECT_STREQ(fake_node_pod_events(node), "NetworkNotReady");
        EXPECT_STREQ(fake_node_status(node, "web"), READY);
}
