/* SPDX-License-Identifier: Apache-2.0 */
/* Edits of running pods: in place, by restarting containers, or by replacing the pod; and
 * resizes. */

#include "tests/unit/pods/worker/fake-node.h"

#include "agent/bundle/cgroups.h"
#include "agent/bundle/resize.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <fcntl.h>

#define READY    "Running Ready | app running ready"
#define REPLACED "stop app/0 signal 15 kill 30\nteardown\ncleanup of everything\nstart\nsetup\n"

static const struct {
        const char *name, *before, *after, *requests, *status;
} edit_rows[] = {
        { "nothing", POD(APP), POD(APP), "", READY },
        { "labels", POD(APP),
          "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {a: b}}\nspec:\n"
          "  hostNetwork: true\n" APP,
          "", READY },
        { "image", POD(APP), POD("  containers: [{name: app, image: other}]\n"),
          "stop app/0 signal 15 kill 30\nrun app/1\n",
          "Running Ready | app running ready (1) after 143" },
        { "command", POD(APP), POD(APP_WITH("command: [other]")),
          "stop app/0 signal 15 kill 30\nrun app/1\n",
          "Running Ready | app running ready (1) after 143" },
        { "deadline", POD(APP), POD("  activeDeadlineSeconds: 1000\n" APP), "", READY },
        { "a second container", POD(APP),
          POD("  containers: [{name: app, image: busybox}, {name: two, image: busybox}]\n"),
          REPLACED "run app/0\nrun two/0\n",
          "Running Ready | app running ready, two running ready" },
        { "the host's PIDs", POD(APP), POD("  hostPID: true\n" APP), REPLACED "run app/0\n",
          READY },
};

TEST(an_edit_has_only_the_necessary_effect)
{
        for (size_t i = 0; i < N_ELEMENTS(edit_rows); i++) {
                cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

                fake_node_apply(node, edit_rows[i].before);
                (void) fake_requests();
                fake_node_pass(node, 10 * USEC_PER_SEC);
                fake_node_apply(node, edit_rows[i].after);
                test_expect_string(__FILE__, __LINE__, edit_rows[i].name, fake_requests(),
                                   edit_rows[i].requests);
                test_expect_string(__FILE__, __LINE__, edit_rows[i].name,
                                   fake_node_status(node, "web"), edit_rows[i].status);
                /* The next agent has nothing to do. */
                fake_node_restart_agent(node);
                fake_node_run(node);
                EXPECT_STREQ(fake_requests(), "connect\n");
                EXPECT_STREQ(fake_node_status(node, "web"), edit_rows[i].status);
        }
}

TEST(images_of_a_successor_are_pulled_before_the_running_pod_is_stopped)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, READY, POD(APP) },
                { 1, "apply", "pull other\n", READY,
                  POD("  hostPID: true\n  containers: [{name: app, image: other}]\n") },
                { 60, "not pulled other", "", READY },
                { 10, "", "pull other\n", READY },
                { 0, "pulled other", REPLACED "run app/0\n", READY },
        };

        fake_image_set("other", IMAGE_PULLING);
        PLAY(node, steps);
}

TEST(a_successor_that_cannot_start_does_not_stop_the_running_pod)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, READY, POD(APP) },
                { 1, "apply", "", READY,
                  POD("  hostPID: true\n" APP
                      "  volumes: [{name: v, hostPath: {path: /does-not-exist, type: "
                      "Directory}}]\n") },
                { 100, "", "", READY },
                { 0, "apply", "", READY, POD(APP) },
                { 0, "apply", REPLACED "run app/0\n", READY,
                  POD("  hostPID: true\n" APP
                      "  volumes: [{name: v, hostPath: {path: /tmp, type: Directory}}]\n") },
        };

        PLAY(node, steps);
}

TEST(a_path_check_that_hangs_does_not_stop_the_running_pod)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, READY, POD(APP) },
                { 1, "apply", "", READY,
                  POD("  hostPID: true\n" APP
                      "  volumes: [{name: v, hostPath: {path: /tmp, type: Directory}}]\n") },
                { 11, "", "", READY },
        };

        fake_disk_hangs = true;
        PLAY(node, steps);
        EXPECT(strstr(node->last_message, "has not answered for 10s"));
        fake_disk_hangs = false;
        fake_node_pass(node, 10 * USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), REPLACED "run app/0\n");
}

/* Returns the value in a file of the pod's cgroup. */
static char *read_pod_value(FakeNode *node, const char *file) {
        cleanup_free char *uid = fake_node_uid(node, "web");
        cleanup_free char *group = cgroup_of_pod(&node->bundle, QOS_BURSTABLE, uid);

        return cgroup_read_value(group, "memory", file);
}

#define LIMITED(memory) \
        POD(APP_WITH("resources: {limits: {memory: " memory "}, requests: {memory: 1Mi}}"))

TEST(new_limits_are_applied_to_running_containers)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        cleanup_free char *before = NULL, *after = NULL;

        fake_node_apply(node, LIMITED("64Mi"));
        before = read_pod_value(node, "memory.max");
        EXPECT_STREQ(before, "67108864");
        (void) fake_requests();
        fake_node_apply(node, LIMITED("128Mi"));
        after = read_pod_value(node, "memory.max");
        EXPECT_STREQ(after, "134217728");
        EXPECT_STREQ(fake_requests(), "");
        EXPECT_STREQ(fake_node_status(node, "web"), READY);
}

TEST(a_limit_that_the_kernel_refuses_is_retried)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        cleanup_free char *before = NULL, *after = NULL;

        fake_node_apply(node, LIMITED("64Mi"));
        (void) fake_node_pod_events(node);
        fake_cgroup_refused_file = "memory.max";
        fake_node_apply(node, LIMITED("32Mi"));
        before = read_pod_value(node, "memory.max");
        EXPECT_STREQ(before, "67108864");
        EXPECT(strstr(fake_node_pod_events(node), "ResizeError"));
        fake_cgroup_refused_file = NULL;
        fake_node_pass(node, 60 * USEC_PER_SEC);
        after = read_pod_value(node, "memory.max");
        EXPECT_STREQ(after, "33554432");
}

TEST(an_edit_while_a_container_is_being_created_restarts_it)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_container("app")->run = RUN_HANGS;
        fake_node_apply(node, POD(APP));
        fake_container("app")->run = RUN_STARTS;
        (void) fake_requests();
        fake_node_apply(node, POD(APP_WITH("command: [other]")));
        EXPECT_STREQ(fake_requests(), "stop app/0 signal 15 kill 30\n");
        fake_container_start_ends("app", SHIM_EVENT_STARTED);
        fake_node_pass(node, 30 * USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), "stop app/0 signal 15 kill 30\nrun app/1\n");
}

TEST(an_edit_ends_the_back_off)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL, POD(APP) },
                { 0, "exit app 1", NULL, NULL },
                { 0, "exit app 1", NULL, "Running | app waiting CrashLoopBackOff (1) after 1" },
                { 1, "apply", "run app/2\n", "Running Ready | app running ready (2) after 1",
                  POD(APP_WITH("command: [other]")) },
        };

        PLAY(node, steps);
}

TEST(an_edit_of_a_completed_pod_runs_it_again)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL, POD("  restartPolicy: Never\n" APP) },
                { 1, "exit app 0", NULL, "Succeeded | app ended Completed 0" },
                { 1, "apply", "cleanup of everything\nstart\nsetup\nrun app/0\n", READY,
                  POD("  restartPolicy: Never\n" APP_WITH("command: [other]")) },
        };

        PLAY(node, steps);
}

TEST(an_ephemeral_container_joins_a_running_pod)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        cleanup_free char *name = NULL, *other = NULL;
        cleanup_error Error error = ERROR_NULL;

        fake_node_apply(node, POD(APP));
        (void) fake_requests();
        EXPECT_EQ(pod_manager_add_ephemeral_container(
                          node->manager, "default", "web-node1",
                          "{\"name\":\"debug\",\"image\":\"busybox\",\"targetContainerName\":"
                          "\"app\"}",
                          &name, &error),
                  0);
        EXPECT_STREQ(name, "debug");
        fake_node_run(node);
        EXPECT_STREQ(fake_requests(), "run debug/0 with a target\n");
        EXPECT_STREQ(fake_node_status(node, "web"),
                     "Running Ready | app running ready, debug running");
        fake_container_exit("debug", 1);
        fake_node_run(node);
        EXPECT_STREQ(fake_node_status(node, "web"),
                     "Running Ready | app running ready, debug ended Error 1");
        EXPECT_EQ(pod_manager_add_ephemeral_container(node->manager, "default", "web-node1",
                                                      "{\"image\":\"busybox\"}", &other, &error),
                  0);
        EXPECT_EQ(strncmp(other, "debugger-", 9), 0);
        fake_node_run(node);
        fake_node_restart_agent(node);
        fake_node_run(node);
        EXPECT_EQ(fake_count_processes(other), 1);
}

static const struct {
        const char *pod, *json;
        int r;
} refused_rows[] = {
        { "none", "{}", -ENOENT },
        { "web-node1", "nonsense", -EINVAL },
        { "web-node1", "{\"name\":\"x\"}", -EINVAL },
};

TEST(a_container_that_cannot_be_added_is_refused)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        fake_node_apply(node, POD(APP));
        for (size_t i = 0; i < N_ELEMENTS(refused_rows); i++) {
                cleanup_error Error error = ERROR_NULL;
                char *name;

                EXPECT_EQ(pod_manager_add_ephemeral_container(node->manager, "default",
                                                              refused_rows[i].pod,
                                                              refused_rows[i].json, &name, &error),
                          refused_rows[i].r);
                EXPECT(error.message);
        }
}

TEST(slices_of_systemd_follow_the_pod)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, READY, LIMITED("64Mi") },
                { 1, "apply", "slice with 3 properties\nscope with 3 properties\n", READY,
                  LIMITED("128Mi") },
                { 1, "stop web",
                  "stop app/0 signal 15 kill 30\nteardown\nstop slice\ncleanup of everything\n"
                  "stop slice\nstop slice\nstop slice\n", /* those of QoS classes */
                  "gone" },
        };

        node->bundle.has_slices = true;
        node->sandbox.systemd = (struct SystemdClient *) (uintptr_t) node;
        PLAY(node, steps);
}
