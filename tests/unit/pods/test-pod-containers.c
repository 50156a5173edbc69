/* SPDX-License-Identifier: Apache-2.0 */
/* The restart of all containers of a pod, and the effect of a cancelled shutdown of the machine on
 * them: real containers whose attempts are adopted, without a shim. */

#include "agent/manifest/manifest.h"
#include "agent/model/schema.h"
#include "agent/pods/container/pod-containers.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/test.h"

typedef struct TestContainers {
        BundleConfig bundle;
        PodContext context;
        PodInstance pod;
        PodContainers containers;
} TestContainers;

static void on_dirty(void *owner, void *userdata) {
}

static void on_log_ended(const char *directory, unsigned attempt, void *userdata) {
}

static bool may_start(const PodContainer *container, void *userdata) {
        return false; /* there is no sandbox */
}

static bool must_stop(void *userdata) {
        return false;
}

static bool is_restarting_all(void *userdata) {
        const TestContainers *test = userdata;

        return test->containers.restart_all == RESTART_ALL_STOPPING;
}

static unsigned generation(void *userdata) {
        const TestContainers *test = userdata;

        return test->containers.generation;
}

static uint64_t remaining_grace_usec(void *userdata) {
        return USEC_PER_SEC;
}

static void restore_slices(void *userdata) {
}

static const PodContainerCallbacks callbacks = {
        .may_start = may_start,
        .must_stop = must_stop,
        .is_restarting_all = is_restarting_all,
        .generation = generation,
        .remaining_grace_usec = remaining_grace_usec,
        .restore_slices = restore_slices,
};

/* 'spec' is YAML of the pod's spec. */
static void test_containers_init(TestContainers *test, const char *spec) {
        cleanup_error Error error = ERROR_NULL;
        ManifestObjects objects = { 0 };
        char yaml[1024];
        Pod *pod = NULL;

        *test = (TestContainers){ .bundle.state_dir = test_directory(),
                                  .bundle.run_dir = test_directory(),
                                  .bundle.log_dir = test_directory() };
        (void) snprintf(yaml, sizeof(yaml),
                        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {%s}\n", spec);
        if (manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error) < 0)
                test_fail(__FILE__, __LINE__, yaml, "is refused: %s", error_message(&error, 0));
        REQUIRE(objects.pods.n == 1);
        REQUIRE(pod_copy(objects.pods.items[0], &pod) == 0);
        manifest_objects_done(&objects);
        test->context = (PodContext){ .bundle = &test->bundle,
                                      .on_dirty = on_dirty,
                                      .on_log_ended = on_log_ended,
                                      .back_off = { 10 * USEC_PER_SEC, 300 * USEC_PER_SEC } };
        REQUIRE(sd_event_new(&test->context.event) >= 0);
        REQUIRE(pod_instance_init_take(&test->pod, &test->context, pod, NULL) == 0);
        REQUIRE(pod_containers_init(&test->containers, &test->pod, &callbacks, test) == 0);
}

static void test_containers_done(TestContainers *test) {
        pod_containers_done(&test->containers);
        pod_instance_done(&test->pod);
        sd_event_unref(test->context.event);
}

static ContainerMachine *machine_of(TestContainers *test, const char *name) {
        PodContainer *container = pod_containers_find(&test->containers, name);

        REQUIRE(container);
        return pod_container_machine(container);
}

/* The container is in back-off, so that a restart is not immediate. */
static void run_container(TestContainers *test, const char *name) {
        ContainerMachine *machine = machine_of(test, name);

        container_machine_adopt(machine, 0, 10 * USEC_PER_SEC);
        container_machine_on_started(machine, 0, now_realtime_usec());
        EXPECT(container_machine_is_running(machine));
}

static void end_container(TestContainers *test, const char *name, int exit_code) {
        ContainerMachine *machine = machine_of(test, name);
        uint64_t now = now_realtime_usec();

        container_machine_on_exited(
                machine, container_machine_attempt(machine),
                &(ContainerExit){ .exit_code = exit_code, .started_at = now, .finished_at = now });
}

#define RESTARTS_ALL                                                                      \
        "containers: [{name: main, image: i, restartPolicy: Never, restartPolicyRules: [" \
        "{action: RestartAllContainers, exitCodes: {operator: In, values: [1]}}]}]"

TEST(a_shutdown_ends_the_back_off_of_a_restart_of_all)
{
        cleanup_with(test_containers_done) TestContainers test;

        test_containers_init(&test, RESTARTS_ALL);
        run_container(&test, "main");
        end_container(&test, "main", 1);
        pod_containers_step_restart_all(&test.containers, /* is_terminating= */ false);
        EXPECT_EQ(test.containers.restart_all, RESTART_ALL_BACK_OFF);
        EXPECT(test.containers.restart_all_timer);
        pod_containers_step_restart_all(&test.containers, /* is_terminating= */ true);
        EXPECT_EQ(test.containers.restart_all, RESTART_ALL_NONE);
        EXPECT(!test.containers.restart_all_timer);
}

#define ONE_COMPLETES                                                          \
        "restartPolicy: OnFailure, initContainers: [{name: init, image: i}], " \
        "containers: [{name: main, image: i}, {name: once, image: i}]"

TEST(a_cancelled_shutdown_restarts_only_containers_that_it_stopped)
{
        cleanup_with(test_containers_done) TestContainers test;

        test_containers_init(&test, ONE_COMPLETES);
        run_container(&test, "init");
        end_container(&test, "init", 0);
        run_container(&test, "once");
        end_container(&test, "once", 0);
        run_container(&test, "main");
        container_machine_disable_restart(machine_of(&test, "main"));
        end_container(&test, "main", 1); /* without the shutdown, it would be restarted */
        EXPECT(container_machine_is_finished(machine_of(&test, "main")));
        EXPECT(!container_machine_end_is_final(machine_of(&test, "main")));
        EXPECT(container_machine_end_is_final(machine_of(&test, "once")));
        pod_containers_restart_stopped(&test.containers);
        pod_containers_step_restart_all(&test.containers, /* is_terminating= */ false);
        EXPECT_EQ(test.containers.restart_all, RESTART_ALL_NONE);
        EXPECT(container_machine_is_waiting(machine_of(&test, "main")));
        EXPECT(container_machine_has_succeeded(machine_of(&test, "init")));
        EXPECT(container_machine_has_succeeded(machine_of(&test, "once")));
        /* A restarted agent makes the same call. */
        pod_containers_adopt_generation(&test.containers);
        EXPECT(container_machine_has_succeeded(machine_of(&test, "once")));
}

TEST(a_shutdown_that_is_cancelled_leaves_a_restart_of_all_to_be_done)
{
        cleanup_with(test_containers_done) TestContainers test;

        test_containers_init(&test, RESTARTS_ALL);
        run_container(&test, "main");
        end_container(&test, "main", 1);
        pod_containers_step_restart_all(&test.containers, /* is_terminating= */ true);
        EXPECT(container_machine_is_finished(machine_of(&test, "main")));
        pod_containers_restart_stopped(&test.containers);
        pod_containers_step_restart_all(&test.containers, /* is_terminating= */ false);
        EXPECT_EQ(test.containers.restart_all, RESTART_ALL_BACK_OFF);
        EXPECT(container_machine_is_waiting(machine_of(&test, "main")));
}
