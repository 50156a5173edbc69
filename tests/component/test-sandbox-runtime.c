/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes that fail, hang, write too much or are missing. */
#include "tests/component/pod-world.h"

/* Writes a script that replaces the runtime; "$id" and "$bundle" are set in it. The caller frees
 * the path. */
static char *fake_runtime(PodWorld *world, const char *script) {
        char *path = path_join(world->directory, "fake-runtime");
        cleanup_free char *text = print_text("#!/bin/sh\n"
                                             "for word in \"$@\"; do\n"
                                             "  [ \"$last\" = --bundle ] && bundle=$word\n"
                                             "  [ \"$last\" = --log ] && log=$word\n"
                                             "  [ \"$word\" = delete ] && deleting=yes\n"
                                             "  last=$word\n"
                                             "done\n"
                                             "[ \"$deleting\" ] && exec runc \"$@\"\n"
                                             "%s\n",
                                             script);

        write_text(path, text);
        REQUIRE(chmod(path, 0755) >= 0);
        world->config.runtime_path = path;
        return path;
}

TEST(a_missing_runtime_is_named)
{
        TestContainer spec = { .name = "c", .script = "true" };
        cleanup_free char *id = NULL, *again = NULL, *path = NULL;
        const ShimEvent *event;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        world.config.runtime_path = "no-such-runc";
        pod_up(&pod, &world, "missing");
        id = pod_run(&pod, &spec);
        event = pod_expect(&pod, SHIM_EVENT_START_FAILED, id);
        EXPECT_STREQ(event->message, "cannot run 'no-such-runc': No such file or directory");
        EXPECT(event->runtime_failed);
        /* A container that never ran may be started again with the same name. */
        again = pod_run(&pod, &spec);
        EXPECT(pod_expect(&pod, SHIM_EVENT_START_FAILED, again)->runtime_failed);
        pod_down(&pod);

        path = fake_runtime(&world, "");
        REQUIRE(chmod(path, 0644) >= 0);
        pod_up(&pod, &world, "forbidden");
        free(TAKE_PTR(id));
        id = pod_run(&pod, &spec);
        event = pod_expect(&pod, SHIM_EVENT_START_FAILED, id);
        EXPECT(strstr(event->message, "fake-runtime': Permission denied"));
        pod_down(&pod);
        world_done(&world);
}

TEST(a_failing_runtime_is_reported_and_its_messages_are_not_in_the_log)
{
        static const struct {
                const char *script, *says;
        } cases[] = {
                { "echo talk; echo first >&2; echo 'the reason' >&2; exit 1", "the reason" },
                { "echo only; exit 1", "only" },
                { "exit 3", "' ended with status 3" },
                { "kill -SEGV $$", "' was killed by signal 11 (Segmentation fault)" },
                { "yes noise | head -c 10000000; echo 'at last' >&2; exit 1", "at last" },
                { "yes noise | head -c 6000000 >&2; exit 1", "noise" },
                { "head -c 100000 /dev/zero >&2; exit 1", "' ended with status 1" },
                { "echo noise; echo '{\"level\":\"error\",\"msg\":\"old\"}' >$log;"
                  "echo '{\"level\":\"error\",\"msg\":\"new \\u00fc\"}' >>$log;"
                  "echo '{\"level\":\"info\",\"msg\":\"nothing\"}' >>$log; echo junk >>$log; exit "
                  "1",
                  "new ü" },
                { "exit 0", "the runtime wrote no PID of the process that it started" },
                { "echo abc >$bundle/pid",
                  "the runtime wrote no PID of the process that it started" },
                { "echo 1 >$bundle/pid",
                  "the runtime wrote no PID of the process that it started" },
                { "echo -5 >$bundle/pid",
                  "the runtime wrote no PID of the process that it started" },
                { "echo 4000000 >$bundle/pid",
                  "the runtime left a process that is not a child of the shim" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                TestContainer spec = { .name = "c", .script = "true" };
                cleanup_free char *path = NULL, *id = NULL, *log = NULL;
                const ShimEvent *event;
                PodWorld world;
                TestPod pod;

                world_init(&world);
                path = fake_runtime(&world, cases[i].script);
                pod_up(&pod, &world, "fails");
                id = pod_run(&pod, &spec);
                event = pod_expect(&pod, SHIM_EVENT_START_FAILED, id);
                EXPECT(event->runtime_failed);
                if (!strstr(event->message, cases[i].says))
                        EXPECT_STREQ(event->message, cases[i].says);
                log = container_log(&pod, &spec);
                {
                        cleanup_free char *text = read_text(log);
                        EXPECT_STREQ(text, "");
                }
                pod_down(&pod);
                (void) umount2(world.run_dir, MNT_DETACH);
                REQUIRE(remove_tree_at(AT_FDCWD, world.image) >= 0);
                free(TAKE_PTR(world.mounts_before));
                world.mounts_before = mounts_in(world.directory);
                world_done(&world);
        }
}

TEST(a_hanging_runtime_is_killed)
{
        TestContainer spec = { .name = "c", .script = "true" };
        cleanup_free char *path = NULL, *id = NULL, *text = NULL, *child = NULL;
        const ShimEvent *event;
        PodWorld world;
        TestPod pod;
        pid_t pid;

        world_init(&world);
        world.config.runtime_timeout_sec = 10; /* the script must name its child */
        path = fake_runtime(&world, "sleep 3600 & echo $! >$bundle/child; wait");
        pod_up(&pod, &world, "hangs");
        id = pod_run(&pod, &spec);
        event = pod_expect(&pod, SHIM_EVENT_START_FAILED, id);
        EXPECT(event->runtime_failed);
        EXPECT(strstr(event->message, "fake-runtime run' did not end within 10 s and was killed"));
        child = container_path(&pod, &spec, "child");
        text = read_text(child);
        pid = (pid_t) strtol(text, NULL, 10);
        REQUIRE(pid > 1);
        for (unsigned i = 0; i < 100 * DEADLINE_SEC && kill(pid, 0) >= 0; i++)
                (void) sd_event_run(world.event, USEC_PER_SEC / 100);
        EXPECT(kill(pid, 0) < 0);
        /* A hanging runtime delays neither the teardown of the pod nor other containers. */
        pod_down(&pod);
        world_done(&world);
}

TEST(the_output_of_a_verbose_runtime_is_complete)
{
        TestContainer spec = { .name = "c", .script = "echo hello" };
        cleanup_free char *path = NULL, *id = NULL, *log = NULL;
        size_t lines = 0;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        path = fake_runtime(&world, "seq 1 200000; exec runc \"$@\"");
        pod_up(&pod, &world, "talks");
        id = pod_run(&pod, &spec);
        (void) pod_expect(&pod, SHIM_EVENT_EXITED, id);
        log = pod_log(&pod, &spec);
        for (const char *p = log; (p = strchr(p, '\n')); p++)
                lines++;
        EXPECT_EQ(lines, 200001);
        EXPECT(strstr(log, "stdout F 200000\nstdout F hello\n"));
        pod_down(&pod);
        world_done(&world);
}

TEST(failures_before_the_runtime_are_reported_as_such)
{
        TestContainer mount_fails = { .name = "mount", .script = "true" };
        TestContainer no_log = { .name = "log", .script = "true" };
        cleanup_free char *fstab = NULL, *id = NULL, *log_id = NULL, *log = NULL;
        cleanup_free char *bundle = NULL, *early = NULL;
        const ShimEvent *event;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_init(&pod, &world, "before");
        pod_start(&pod);
        early = pod_run(&pod, &mount_fails);
        event = pod_expect(&pod, SHIM_EVENT_START_FAILED, early);
        EXPECT_STREQ(event->message, "the sandbox is not set up");
        EXPECT(!event->runtime_failed);
        EXPECT_STREQ(pod_set_up(&pod, ""), "ready");

        bundle = container_path(&pod, &mount_fails, "");
        fstab = print_text("/no/such/source %s/data none bind 0 0\n", bundle);
        mount_fails.fstab = fstab;
        id = pod_run(&pod, &mount_fails);
        event = pod_expect(&pod, SHIM_EVENT_START_FAILED, id);
        EXPECT(!event->runtime_failed);
        EXPECT_STREQ(event->message, "cannot open '/no/such/source': No such file or directory");
        {
                cleanup_free char *mounts = shim_mounts(&pod);
                EXPECT(!strstr(mounts, bundle));
        }
        log_id = container_id_of(&pod, &no_log);
        log = container_log(&pod, &no_log);
        EXPECT_EQ(sandbox_run_container(pod.sandbox, &(SandboxContainerConfig){ .id = log_id,
                                                                                .name = "log",
                                                                                .bundle = bundle,
                                                                                .log = log }),
                  0);
        event = pod_expect(&pod, SHIM_EVENT_START_FAILED, log_id);
        EXPECT(!event->runtime_failed);
        EXPECT(strstr(event->message, "cannot open the log '"));
        pod_down(&pod);
        world_done(&world);
}

TEST(a_stop_during_the_start_takes_effect)
{
        TestContainer spec = { .name = "c", .script = "trap 'exit 8' TERM; sleep 3600 & wait" };
        cleanup_free char *path = NULL, *id = NULL;
        const ShimEvent *event;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        path = fake_runtime(&world, "while [ ! -e $bundle/go ]; do sleep 0.01; done\n"
                                    "exec runc \"$@\"");
        pod_up(&pod, &world, "early");
        id = pod_run(&pod, &spec);
        EXPECT_EQ(sandbox_stop_container(pod.sandbox, id, SIGTERM, 500 * USEC_PER_MSEC), 0);
        pod_disconnect(&pod);
        pod_reconnect(&pod);
        EXPECT(pod_expect(&pod, SHIM_EVENT_STARTING, id)->replayed);
        {
                cleanup_free char *go = container_path(&pod, &spec, "go");
                write_text(go, "");
        }
        event = pod_expect(&pod, SHIM_EVENT_EXITED, id);
        /* runc's own init, which has not executed the program yet, ends with 2. */
        if (event->signal != SIGKILL && event->signal != SIGTERM && event->exit_code != 2)
                EXPECT_EQ(event->exit_code, 8);
        pod_down(&pod);
        world_done(&world);
}

TEST(the_teardown_of_a_pod_does_not_wait_for_a_hanging_runtime)
{
        TestContainer spec = { .name = "c", .script = "true" };
        cleanup_free char *path = NULL, *id = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        world.config.runtime_timeout_sec = 3600;
        path = fake_runtime(&world, "sleep 3600");
        pod_up(&pod, &world, "stuck");
        id = pod_run(&pod, &spec);
        pod_down(&pod); /* within its deadline of three minutes */
        world_done(&world);
}

TEST(a_start_that_failed_can_be_deleted)
{
        TestContainer spec = { .name = "c", .program = "/no/such/program" };
        cleanup_free char *id = NULL, *bundle = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "failed");
        id = pod_run(&pod, &spec);
        (void) pod_expect(&pod, SHIM_EVENT_START_FAILED, id);
        bundle = container_path(&pod, &spec, "");
        EXPECT(exists(bundle));
        pod_delete(&pod, &spec, id);
        (void) pod_expect(&pod, SHIM_EVENT_DELETED, id);
        EXPECT(!exists(bundle));
        pod_down(&pod);
        world_done(&world);
}
