/* SPDX-License-Identifier: Apache-2.0 */
/* How shims and pods end, and what remains of them. */
#include "tests/component/pod-world.h"

TEST(a_killed_shim_is_reported_lost_once_and_cleaned_up_after)
{
        TestContainer spec = { .name = "c", .script = "sleep 3600 & sleep 3600" };
        cleanup_free char *id = NULL, *cgroup = NULL, *memory = NULL, *state = NULL, *again = NULL;
        int status = 0;
        PodWorld world;
        TestPod pod;
        pid_t pid;

        REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) >= 0); /* shows how the container ends */
        world_init(&world);
        pod_up(&pod, &world, "killed");
        id = pod_run(&pod, &spec);
        pid = pod_expect(&pod, SHIM_EVENT_STARTED, id)->pid;
        EXPECT(kill(sandbox_pid(pod.sandbox), SIGKILL) >= 0);
        (void) pod_expect(&pod, SHIM_EVENT_LOST, NULL);
        EXPECT(!sandbox_is_connected(pod.sandbox));
        EXPECT_EQ(sandbox_pid(pod.sandbox), 0);
        EXPECT_EQ(sandbox_run_container(pod.sandbox, &(SandboxContainerConfig){ .id = id }),
                  -ENOTCONN);
        EXPECT_EQ(sandbox_connect(pod.sandbox, NULL), 0);
        EXPECT(kill(pid, 0) >= 0); /* only the cleanup kills it */

        cgroup = print_text("%s/podkilled", world.cgroup);
        memory = cgroup_file(cgroup, "memory", "cgroup.procs");
        EXPECT(exists(memory));
        state = path_join(world.directory, "state");
        {
                const char *directories[] = { pod.directory, state, "/no/such/directory" };

                EXPECT_EQ(clean_up(&world, cgroup, directories, 3), 1);
                EXPECT(!exists(memory));
                EXPECT(!exists(pod.directory));
                EXPECT(!exists(state));
                EXPECT_EQ(clean_up(&world, cgroup, directories, 3), 1);
        }
        EXPECT_EQ(waitpid(pid, &status, 0), pid);
        EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        for (size_t i = 0, lost = 0; i < pod.n_records; i++) {
                lost += pod.records[i].event.type == SHIM_EVENT_LOST;
                EXPECT(lost <= 1);
        }
        expect_no_mounts(&world);

        /* The pod can get a new shim through the same Sandbox. */
        REQUIRE(mkdir(pod.directory, 0700) >= 0);
        pod_start(&pod);
        EXPECT_STREQ(pod_set_up(&pod, ""), "ready");
        again = pod_run(&pod, &spec);
        (void) pod_expect(&pod, SHIM_EVENT_STARTED, again);
        pod_down(&pod);
        world_done(&world);
}

TEST(the_socket_of_a_dead_shim_is_replaced)
{
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "stale");
        EXPECT(kill(sandbox_pid(pod.sandbox), SIGKILL) >= 0);
        (void) pod_expect(&pod, SHIM_EVENT_LOST, NULL);
        pod_start(&pod);
        pod_down(&pod);
        world_done(&world);
}

TEST(a_shim_that_cannot_start_is_reported_as_an_error_or_as_lost)
{
        cleanup_error Error error = ERROR_NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        world.config.shim_path = "/no/such/shim";
        pod_init(&pod, &world, "none");
        EXPECT_EQ(
                sandbox_start(pod.sandbox, &(SandboxStartOptions){ .host_network = true }, &error),
                -ENOENT);
        EXPECT_STREQ(error.message, "cannot start '/no/such/shim': No such file or directory");
        EXPECT_EQ(sandbox_connect(pod.sandbox, NULL), 0);
        pod_done(&pod);

        world.config.shim_path = "/bin/true";
        pod_init(&pod, &world, "true");
        EXPECT_EQ(sandbox_start(pod.sandbox, &(SandboxStartOptions){ .host_network = true }, NULL),
                  0);
        (void) pod_expect(&pod, SHIM_EVENT_LOST, NULL);
        EXPECT_EQ(pod.n_records, 1);
        pod_done(&pod);
        world_done(&world);
}

TEST(the_teardown_of_a_pod_leaves_nothing_behind)
{
        TestContainer runs = { .name = "runs", .script = "trap '' TERM; sleep 3600" };
        TestContainer family = { .name = "family",
                                 .host_pids = true,
                                 .script = "sleep 3600 & sleep 3600" };
        TestContainer ended = { .name = "ended", .script = "true" };
        const TestContainer *specs[] = { &runs, &family, &ended };
        cleanup_free char *fstab = NULL, *socket = NULL, *runtime = NULL;
        PodWorld world;
        TestPod pod;
        pid_t shim, pid = -1;

        world_init(&world);
        pod_init(&pod, &world, "whole");
        pod_start(&pod);
        fstab = print_text("tmpfs %s/shm tmpfs size=64k 0 0\n", pod.directory);
        EXPECT_STREQ(pod_set_up(&pod, fstab), "ready");
        for (size_t i = 0; i < N_ELEMENTS(specs); i++) {
                cleanup_free char *id = pod_run(&pod, specs[i]);

                pid = pod_expect(&pod, SHIM_EVENT_STARTED, id)->pid;
                if (specs[i] == &ended)
                        (void) pod_expect(&pod, SHIM_EVENT_EXITED, id);
        }
        expect_no_mounts(&world);
        shim = sandbox_pid(pod.sandbox);
        EXPECT_EQ(sandbox_teardown(pod.sandbox), 0);
        (void) pod_expect(&pod, SHIM_EVENT_LOST, NULL);
        for (unsigned i = 0; i < 100 * DEADLINE_SEC && kill(shim, 0) >= 0; i++)
                (void) sd_event_run(world.event, USEC_PER_SEC / 100);
        EXPECT(kill(shim, 0) < 0); /* reaped by the loop */
        EXPECT(kill(pid, 0) < 0);
        socket = path_join(pod.directory, "shim.sock");
        EXPECT(!exists(socket));
        runtime = path_join(pod.directory, "runtime");
        for (size_t i = 0; i < N_ELEMENTS(specs); i++) {
                cleanup_free char *cgroup = container_cgroup(&pod, specs[i]);
                cleanup_free char *procs = cgroup_file(cgroup, "memory", "cgroup.procs");
                cleanup_free char *id = container_id_of(&pod, specs[i]);
                cleanup_free char *state = path_join(runtime, id);

                EXPECT(!exists(procs));
                EXPECT(!exists(state));
        }
        expect_no_mounts(&world);
        pod_done(&pod);
        world_done(&world);
}

TEST(the_log_remains_after_its_container_is_deleted)
{
        TestContainer spec = { .name = "c", .script = "echo kept" };
        cleanup_free char *id = NULL, *bundle = NULL, *log = NULL, *runtime = NULL, *mounts = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "deleted");
        id = pod_run(&pod, &spec);
        (void) pod_expect(&pod, SHIM_EVENT_EXITED, id);
        bundle = container_path(&pod, &spec, "");
        EXPECT(exists(bundle));
        pod_delete(&pod, &spec, id);
        (void) pod_expect(&pod, SHIM_EVENT_DELETED, id);
        EXPECT(!exists(bundle));
        mounts = shim_mounts(&pod);
        EXPECT(!strstr(mounts, bundle));
        runtime = print_text("%s/runtime/%s", pod.directory, id);
        EXPECT(!exists(runtime));
        log = pod_log(&pod, &spec);
        EXPECT_STREQ(log, "stdout F kept\n");
        pod_down(&pod);
        world_done(&world);
}

TEST(a_shim_tears_its_pod_down_on_sigterm)
{
        TestContainer spec = { .name = "c", .script = "trap '' TERM; sleep 3600" };
        cleanup_free char *id = NULL, *cgroup = NULL, *procs = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "term");
        id = pod_run(&pod, &spec);
        (void) pod_expect(&pod, SHIM_EVENT_STARTED, id);
        EXPECT(kill(sandbox_pid(pod.sandbox), SIGTERM) >= 0);
        (void) pod_expect(&pod, SHIM_EVENT_LOST, NULL);
        EXPECT(pod_find(&pod, SHIM_EVENT_EXITED, id));
        cgroup = container_cgroup(&pod, &spec);
        procs = cgroup_file(cgroup, "memory", "cgroup.procs");
        EXPECT(!exists(procs));
        pod_done(&pod);
        world_done(&world);
}

TEST(a_log_is_rotated_while_its_container_writes_to_it)
{
        TestContainer spec = { .name = "c", .script = "seq 1 20000" };
        cleanup_free char *id = NULL, *log = NULL, *text = NULL;
        struct stat st;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_init(&pod, &world, "rotates");
        pod_start(&pod);
        pod_ask_setup(&pod, "", 100000);
        (void) pod_expect(&pod, SHIM_EVENT_READY, NULL);
        id = pod_run(&pod, &spec);
        (void) pod_expect(&pod, SHIM_EVENT_EXITED, id);
        log = container_log(&pod, &spec);
        EXPECT(stat(log, &st) >= 0);
        EXPECT(st.st_size <= 100000);
        text = pod_log(&pod, &spec);
        EXPECT(strstr(text, "stdout F 20000\n"));
        pod_down(&pod);
        world_done(&world);
}
