/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a pod: its sandbox, the order of its containers, restarts and their back-off. */

#include "tests/unit/pods/worker/fake-node.h"

#include "common/cleanup.h"

#include <errno.h>

#define REMOVED "teardown\ncleanup of everything\n"

TEST(a_pod_starts_runs_and_stops)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", "start\nsetup\nrun app/0\n", "Running Ready | app running ready",
                  POD(APP) },
                { 60, "", "", "Running Ready | app running ready" },
                { 0, "stop web", "stop app/0 signal 15 kill 30\n" REMOVED, "gone" },
        };

        PLAY(node, steps);
        EXPECT_EQ(fake_count_shims(), 0);
        EXPECT_STREQ(fake_node_pod_events(node), "Pulled Created Started Stopping Killing");
}

TEST(a_container_that_ignores_its_stop_signal_is_killed_at_the_end_of_the_grace_period)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL, POD("  terminationGracePeriodSeconds: 7\n" APP) },
                { 0, "stop web", "stop app/0 signal 15 kill 7\n",
                  "Running deleted Ready | app running ready" },
                { 6, "", "", "Running deleted Ready | app running ready" },
                { 1, "", REMOVED, "gone" },
        };

        fake_container("app")->ignores_signal = true;
        PLAY(node, steps);
        fake_container("app")->ignores_signal = false;
}

/* The delays are the kubelet's: the first restart is immediate, the next ones follow 10 s, 20 s, 40
 * s … after the exit. */
TEST(restarts_have_a_back_off_that_a_long_run_resets)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL, POD(APP) },
                { 5, "exit app 1", "run app/1\n", "Running Ready | app running ready (1) after 1" },
                { 0, "exit app 1", "", "Running | app waiting CrashLoopBackOff (1) after 1" },
                { 9, "", "", "Running | app waiting CrashLoopBackOff (1) after 1" },
                { 1, "", "run app/2\n", "Running Ready | app running ready (2) after 1" },
                { 0, "exit app 0", "", "Running | app waiting CrashLoopBackOff (2) after 0" },
                { 19, "", "", NULL },
                { 1, "", "run app/3\n", "Running Ready | app running ready (3) after 0" },
                { 601, "exit app 2", "run app/4\n",
                  "Running Ready | app running ready (4) after 2" },
                { 0, "exit app 2", "", "Running | app waiting CrashLoopBackOff (4) after 2" },
                { 10, "", "run app/5\n", NULL },
        };

        PLAY(node, steps);
}

static const struct {
        const char *policy;
        int exit_code;
        const char *requests, *status;
} restart_rows[] = {
        { "Always", 0, "run app/1\n", "Running Ready | app running ready (1) after 0" },
        { "Always", 1, "run app/1\n", "Running Ready | app running ready (1) after 1" },
        { "OnFailure", 0, "teardown\ncleanup of a completed pod\n",
          "Succeeded | app ended Completed 0" },
        { "OnFailure", 1, "run app/1\n", "Running Ready | app running ready (1) after 1" },
        { "Never", 0, "teardown\ncleanup of a completed pod\n",
          "Succeeded | app ended Completed 0" },
        { "Never", 3, "teardown\ncleanup of a completed pod\n", "Failed | app ended Error 3" },
};

TEST(the_restart_policy_is_applied_after_an_exit)
{
        for (size_t i = 0; i < N_ELEMENTS(restart_rows); i++) {
                cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
                char yaml[512];

                (void) snprintf(yaml, sizeof(yaml), POD("  restartPolicy: %s\n" APP),
                                restart_rows[i].policy);
                fake_node_apply(node, yaml);
                (void) fake_requests();
                fake_container_exit("app", restart_rows[i].exit_code);
                fake_node_run(node);
                EXPECT_STREQ(fake_requests(), restart_rows[i].requests);
                EXPECT_STREQ(fake_node_status(node, "web"), restart_rows[i].status);
                /* Containers that have ended permanently do not run after a restart of the agent or
                 * the machine either. */
                fake_node_restart_agent(node);
                fake_node_run(node);
                EXPECT_STREQ(fake_node_status(node, "web"), restart_rows[i].status);
        }
}

TEST(init_containers_run_one_after_another_and_sidecars_with_the_pod)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", "start\nsetup\nrun first/0\n",
                  "Pending | first running, proxy waiting PodInitializing, second waiting "
                  "PodInitializing, app waiting PodInitializing",
                  POD("  initContainers:\n"
                      "  - {name: first, image: busybox}\n"
                      "  - {name: proxy, image: busybox, restartPolicy: Always}\n"
                      "  - {name: second, image: busybox}\n" APP) },
                { 1, "exit first 0", "run proxy/0\nrun second/0\n",
                  "Pending | first ended Completed 0, proxy running ready, second running, app "
                  "waiting PodInitializing" },
                { 1, "exit second 1", "run second/1\n", NULL },
                { 1, "exit proxy 1", "run proxy/1\n", NULL },
                { 1, "exit second 0", "run app/0\n",
                  "Running Ready | first ended Completed 0, proxy running ready (1) after 1, "
                  "second ended Completed 0 (1) after 1, app running ready" },
                { 0, "stop web",
                  "stop proxy/1 signal 15 in 30, kill 32\nstop app/0 signal 15 kill 30\n"
                  "stop proxy/1 signal 15 kill 30\n" REMOVED,
                  "gone" },
        };

        PLAY(node, steps);
}

TEST(an_init_container_that_fails_permanently_fails_the_pod)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL,
                  POD("  restartPolicy: Never\n"
                      "  initContainers: [{name: first, image: busybox}]\n" APP) },
                { 1, "exit first 9", "teardown\ncleanup of a completed pod\n",
                  "Failed | first ended Error 9, app waiting PodInitializing" },
                { 1000, "", "", "Failed | first ended Error 9, app waiting PodInitializing" },
        };

        PLAY(node, steps);
}

TEST(a_completed_pod_ends_its_sidecars)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL,
                  POD("  restartPolicy: OnFailure\n"
                      "  initContainers: [{name: proxy, image: busybox, restartPolicy: "
                      "Always}]\n" APP) },
                { 1, "exit app 0",
                  "stop proxy/0 signal 15 kill 30\nteardown\ncleanup of a completed pod\n",
                  "Succeeded | proxy ended Error 143, app ended Completed 0" },
        };

        PLAY(node, steps);
}

TEST(a_pod_whose_shim_died_starts_again_from_its_first_init_container)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL,
                  POD("  initContainers: [{name: first, image: busybox}]\n" APP) },
                { 1, "exit first 0", NULL, NULL },
                { 1, "shims die", "cleanup of the sandbox\nstart\nsetup\nrun first/1\n", NULL },
                { 1, "exit first 0", "run app/1\n",
                  "Running Ready | first ended Completed 0 (1) after 0, app running ready (1) "
                  "after "
                  "137" },
        };

        PLAY(node, steps);
}

TEST(a_broken_connection_changes_nothing)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL, POD(APP) },
                { 1, "connections break", "", "Running Ready | app running ready" },
                { 1, "exit app 1", "run app/1\n", NULL },
        };

        PLAY(node, steps);
}

TEST(a_sandbox_that_cannot_be_created_is_tried_again_each_time_later)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", "", "Pending | app waiting ContainerCreating", POD(APP) },
                { 1, "", "", NULL },
                { 2, "", "", NULL },
        };

        fake_shims.start_error = "no more processes";
        PLAY(node, steps);
        EXPECT_STREQ(fake_node_pod_events(node),
                     "FailedCreatePodSandBox FailedCreatePodSandBox FailedCreatePodSandBox");
        EXPECT_STREQ(node->last_message, "Failed to create pod sandbox: no more processes");
        fake_shims.start_error = NULL;
        fake_node_pass(node, 3 * USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), "");
        fake_node_pass(node, 1 * USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), "start\nsetup\nrun app/0\n");
}

TEST(mounts_that_cannot_be_made_are_tried_again)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_shims.setup_error = "mount failed";
        fake_node_apply(node, POD(APP));
        EXPECT_STREQ(fake_requests(), "start\nsetup\n");
        fake_node_pass(node, USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), "setup\n");
        EXPECT_STREQ(fake_node_pod_events(node), "FailedMount FailedMount");
        fake_shims.setup_error = NULL;
        fake_node_pass(node, 2 * USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), "setup\nrun app/0\n");
}

TEST(a_shim_that_dies_before_the_mounts_are_made_is_replaced_later)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", "start\nsetup\n", "Pending | app waiting ContainerCreating",
                  POD(APP) },
                { 0, "shims die", "cleanup of the sandbox\n",
                  "Pending | app waiting ContainerCreating" },
                { 1, "", "start\nsetup\n", NULL },
                { 0, "stop web", "teardown\ncleanup of everything\n", "gone" },
        };

        fake_shims.setup_hangs = true;
        PLAY(node, steps);
}

TEST(a_shim_that_does_not_answer_is_waited_for_and_killed_when_the_pod_stops)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", "start\n", "Pending syncing | app waiting ContainerCreating",
                  POD(APP) },
                { 10, "", "", "Pending | app waiting ContainerCreating" },
                { 0, "stop web", "", NULL },
                { 100, "", "cleanup of everything\n", "gone" },
        };

        fake_shims.hangs = true;
        PLAY(node, steps);
}

TEST(a_cleanup_that_fails_is_tried_again)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL, POD(APP) },
                { 0, "stop web", "stop app/0 signal 15 kill 30\n" REMOVED, NULL },
                { 1, "", "cleanup of everything\n", NULL },
                { 2, "", "cleanup of everything\n", "gone" },
        };

        fake_shims.n_cleanup_errors = 2;
        PLAY(node, steps);
}

static const struct {
        FakeRun run;
        const char *status, *events;
} start_rows[] = {
        { RUN_FAILS, "Pending | app waiting CreateContainerError", "Pulled Failed" },
        { RUN_REFUSED, "Running | app waiting RunContainerError after 128",
          "Pulled Created Failed" },
};

TEST(a_container_that_cannot_be_started_is_tried_again)
{
        for (size_t i = 0; i < N_ELEMENTS(start_rows); i++) {
                cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

                fake_container("app")->run = start_rows[i].run;
                fake_node_apply(node, POD(APP));
                EXPECT_STREQ(fake_node_status(node, "web"), start_rows[i].status);
                EXPECT_STREQ(fake_node_pod_events(node), start_rows[i].events);
                fake_container("app")->run = RUN_STARTS;
                fake_node_pass(node, 10 * USEC_PER_SEC);
                EXPECT_EQ(fake_count_processes("app"), 1);
        }
}

TEST(number_of_containers_created_at_once_is_limited)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_container("app")->run = RUN_HANGS;
        fake_container("two")->run = RUN_HANGS;
        fake_container("three")->run = RUN_HANGS;
        fake_node_apply(node, POD("  containers:\n  - {name: app, image: busybox}\n"
                                  "  - {name: two, image: busybox}\n"
                                  "  - {name: three, image: busybox}\n"));
        EXPECT_STREQ(fake_requests(), "start\nsetup\nrun app/0\nrun two/0\n");
        fake_container_start_ends("two", SHIM_EVENT_STARTED);
        fake_node_run(node);
        EXPECT_STREQ(fake_requests(), "run three/0\n");
        fake_container_start_ends("app", SHIM_EVENT_START_FAILED);
        fake_node_run(node);
        EXPECT_STREQ(fake_node_status(node, "web"),
                     "Pending | app waiting CreateContainerError, three waiting "
                     "ContainerCreating, two running ready");
        fake_container("app")->run = fake_container("two")->run = fake_container("three")->run =
                RUN_STARTS;
}

TEST(a_runtime_that_hangs_does_not_keep_others_from_starting)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_container("app")->run = RUN_HANGS;
        fake_container("two")->run = RUN_HANGS;
        fake_node_apply(node, POD("  containers:\n  - {name: app, image: busybox}\n"
                                  "  - {name: two, image: busybox}\n"
                                  "  - {name: three, image: busybox}\n"));
        (void) fake_requests();
        fake_node_pass(node, 6 * USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), "run three/0\n");
        fake_container("app")->run = fake_container("two")->run = RUN_STARTS;
}

TEST(a_slow_runtime_is_waited_for_if_memory_limits_the_number_of_starts)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        node->start_limit = (StartLimit){ .max = 1, .is_of_memory = true };
        fake_node_restart_agent(node);
        fake_container("app")->run = fake_container("two")->run = RUN_HANGS;
        fake_node_apply(node, POD("  containers:\n  - {name: app, image: busybox}\n"
                                  "  - {name: two, image: busybox}\n"
                                  "  - {name: three, image: busybox}\n"));
        (void) fake_requests();
        fake_node_pass(node, 100 * USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), "");
        fake_container_start_ends("app", SHIM_EVENT_START_FAILED);
        fake_node_run(node);
        EXPECT_STREQ(fake_requests(), "run two/0\n");
        fake_container_start_ends("two", SHIM_EVENT_STARTED);
        fake_node_run(node);
        EXPECT_STREQ(fake_requests(), "run three/0\n");
        fake_container("app")->run = fake_container("two")->run = RUN_STARTS;
}

TEST(a_container_waits_for_its_image_with_a_back_off)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", "start\nsetup\npull busybox\n",
                  "Pending | app waiting ContainerCreating", POD(APP) },
                { 1, "not pulled busybox", "", "Pending | app waiting ErrImagePull" },
                { 10, "", "pull busybox\n", "Pending | app waiting ErrImagePull" },
                { 1, "not pulled busybox", "", "Pending | app waiting ImagePullBackOff" },
                { 19, "", "", NULL },
                { 1, "", "pull busybox\n", NULL },
                { 1, "pulled busybox", "run app/0\n", "Running Ready | app running ready" },
        };

        fake_image_set("busybox", IMAGE_PULLING);
        PLAY(node, steps);
        fake_image_set("busybox", IMAGE_PRESENT);
}

static const struct {
        const char *policy;
        FakeImageState state;
        const char *status;
} image_rows[] = {
        { "Never", IMAGE_MISSING, "Pending | app waiting ErrImageNeverPull" },
        { "IfNotPresent", IMAGE_INVALID, "Pending | app waiting InvalidImageName" },
        { "IfNotPresent", IMAGE_MISSING, "Pending | app waiting ErrImagePull" },
};

TEST(the_reason_names_the_image_that_is_not_available)
{
        for (size_t i = 0; i < N_ELEMENTS(image_rows); i++) {
                cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
                char yaml[512];

                (void) snprintf(yaml, sizeof(yaml), POD(APP_WITH("imagePullPolicy: %s")),
                                image_rows[i].policy);
                fake_image_set("busybox", image_rows[i].state);
                fake_node_apply(node, yaml);
                EXPECT_STREQ(fake_node_status(node, "web"), image_rows[i].status);
                fake_image_set("busybox", IMAGE_PRESENT);
                pod_manager_on_images_changed(node->manager);
                fake_node_run(node);
                EXPECT_STREQ(fake_node_status(node, "web"), "Running Ready | app running ready");
        }
}

TEST(volume_images_are_pulled_before_their_container_starts)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", "start\nsetup\npull data\n", NULL,
                  POD(APP_WITH(
                          "volumeMounts: [{name: data, mountPath: /data}]") "  volumes: [{name: "
                                                                            "data, image: "
                                                                            "{reference: "
                                                                            "data}}]\n") },
                { 1, "not pulled data", "", "Pending | app waiting ImagePullBackOff" },
                { 10, "", "pull data\n", NULL },
                { 0, "pulled data", "run app/0\n", "Running Ready | app running ready" },
        };

        fake_image_set("data", IMAGE_PULLING);
        PLAY(node, steps);
}

TEST(pod_network_is_attached_before_containers_start_and_detached_after_they_end)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", "start with a network\nsetup\nplugin ADD\nrun app/0\n",
                  "Running Ready | app running ready", POD_HEAD APP },
                { 1, "shims die",
                  "cleanup of the sandbox\nstart with a network\nsetup\nplugin DEL\nplugin ADD\n"
                  "run app/1\n",
                  NULL },
                { 1, "stop web",
                  "stop app/1 signal 15 kill 30\nplugin DEL\nteardown\ncleanup of everything\n",
                  "gone" },
        };

        PLAY(node, steps);
}

TEST(a_failed_plugin_is_retried_after_a_delete)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_shims.plugin_error = "no more addresses";
        fake_node_apply(node, POD_HEAD APP);
        EXPECT_STREQ(fake_requests(), "start with a network\nsetup\nplugin ADD\nplugin DEL\n");
        EXPECT_STREQ(fake_node_status(node, "web"), "Pending | app waiting ContainerCreating");
        fake_shims.plugin_error = NULL;
        fake_node_pass(node, USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), "setup\nplugin DEL\nplugin ADD\nrun app/0\n");
        fake_shims.plugin_error = "it is stuck";
        pod_manager_stop_pod(node->manager,
                             &(ObjectMeta){ .name = (char[]){ "web-node1" },
                                            .namespace = (char[]){ "default" } },
                             "test");
        fake_node_run(node);
        EXPECT_STREQ(fake_requests(), "stop app/0 signal 15 kill 30\nplugin DEL\n");
        fake_shims.plugin_error = NULL;
        fake_node_pass(node, USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), "plugin DEL\nteardown\ncleanup of everything\n");
}

TEST(a_pod_waits_for_a_network_that_is_not_ready)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        node->network.not_ready = "cni plugin not initialized";
        fake_node_apply(node, POD_HEAD APP);
        EXPECT_STREQ(fake_requests(), "");
        EXPECT_STREQ(fake_node_pod_events(node), "NetworkNotReady");
        node->network.not_ready = NULL;
        pod_manager_on_network_changed(node->manager);
        fake_node_run(node);
        EXPECT_STREQ(fake_requests(), "start with a network\nsetup\nplugin ADD\nrun app/0\n");
}

#define RESTART_ALL_POD                                                                       \
        POD("  containers:\n"                                                                 \
            "  - name: app\n"                                                                 \
            "    image: busybox\n"                                                            \
            "    restartPolicy: Never\n"                                                      \
            "    restartPolicyRules:\n"                                                       \
            "    - {action: RestartAllContainers, exitCodes: {operator: In, values: [88]}}\n" \
            "  - {name: two, image: busybox}\n")

TEST(a_rule_restarts_all_containers)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL, RESTART_ALL_POD },
                { 1, "exit app 88", "stop two/0 signal 15 kill 2\nrun app/1\nrun two/1\n",
                  "Running Ready | app running ready (1) after 88, two running ready (1) after "
                  "143" },
                { 1, "exit app 88", "stop two/1 signal 15 kill 2\n", NULL },
                { 10, "", "run app/2\nrun two/2\n", NULL },
                { 1, "agent restarts", "connect\n", NULL },
                { 1, "exit app 3", "", NULL },
        };

        PLAY(node, steps);
}

TEST(draining_ends_when_no_pod_is_left)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_node_apply(node, POD(APP));
        pod_manager_set_draining(node->manager);
        EXPECT_EQ(pod_manager_drained(node->manager), 0);
        fake_shims.n_cleanup_errors = 100;
        pod_manager_stop_pod(node->manager,
                             &(ObjectMeta){ .name = (char[]){ "web-node1" },
                                            .namespace = (char[]){ "default" } },
                             "test");
        fake_node_pass(node, 10 * USEC_PER_SEC);
        EXPECT_EQ(pod_manager_drained(node->manager), 0);
        fake_node_pass(node, 60 * USEC_PER_SEC);
        EXPECT_EQ(pod_manager_drained(node->manager), -EBUSY);
        fake_shims.n_cleanup_errors = 0;
        fake_node_pass(node, 60 * USEC_PER_SEC);
        EXPECT_EQ(pod_manager_drained(node->manager), 1);
}
