/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in containers (probes, hooks), delayed stops, and changed checkpoints. */

#include "tests/component/pod-world.h"

static void ask_in(TestPod *pod, const char *container, const char *id, const char *script,
                   uint64_t timeout_usec) {
        char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char *) (uintptr_t) script, NULL };

        pod_exec_in(pod, id,
                    &(SandboxContainerExec){
                            .container = container, .argv = argv, .timeout_usec = timeout_usec });
}

static const ShimEvent *run_in(TestPod *pod, const char *container, const char *script,
                               uint64_t timeout_usec) {
        ask_in(pod, container, "t", script, timeout_usec);
        return pod_expect(pod, SHIM_EVENT_EXEC_DONE, "t");
}

/* The container counts as started before its script runs; the script creates this file as its first
 * step. */
static void wait_until_ready(TestPod *pod, const char *container) {
        const ShimEvent *event =
                run_in(pod, container, "until [ -s /tmp/ready ]; do sleep 0.01; done", 0);

        EXPECT_EQ(event->exit_code, 0);
}

/* The ID of a running container, which the caller frees. */
static char *start_container(TestPod *pod, PodWorld *world, const char *uid, const char *script) {
        char *id;

        pod_up(pod, world, uid);
        id = pod_run(pod, &(TestContainer){ .name = "c", .script = script, .note = "first" });
        (void) pod_expect(pod, SHIM_EVENT_STARTED, id);
        return id;
}

TEST(a_program_runs_in_its_container_and_both_streams_and_its_status_are_returned)
{
        cleanup_free char *id = NULL;
        const ShimEvent *event;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        id = start_container(&pod, &world, "within", "echo here >/tmp/ready; sleep 3600");
        wait_until_ready(&pod, id);
        event = run_in(&pod, id, "cat /tmp/ready; echo error >&2; exit 7", 0);
        EXPECT_STREQ(event->output, "here\nerror\n");
        EXPECT_EQ(event->exit_code, 7);
        EXPECT_STREQ(event->message, "");
        event = run_in(&pod, id, "kill -9 $$", 0);
        EXPECT_EQ(event->exit_code, 137);
        event = run_in(&pod, id, "head -c 100000 /dev/zero | tr '\\0' x", 0);
        EXPECT_EQ(event->exit_code, 0);
        EXPECT(event->output[0] == 'x');
        pod_down(&pod);
        world_done(&world);
}

TEST(a_program_that_exceeds_its_time_limit_is_killed_and_its_container_is_not)
{
        cleanup_free char *id = NULL;
        const ShimEvent *event;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        id = start_container(&pod, &world, "late", "sleep 3600");
        /* The limit includes the start of the program by the runtime. */
        event = run_in(&pod, id, "echo started; sleep 1234 & sleep 1234", 20 * USEC_PER_SEC);
        EXPECT(event->timed_out);
        EXPECT_EQ(event->exit_code, 137);
        EXPECT_STREQ(event->output, "started\n");
        /* Its children are killed too: only the container processes that run this check are
         * left. */
        event = run_in(&pod, id, "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; done", 0);
        EXPECT(!strstr(event->output, "sleep 1234"));
        EXPECT(strstr(event->output, "sleep 3600"));
        EXPECT(!pod_find(&pod, SHIM_EVENT_EXITED, id));
        pod_down(&pod);
        world_done(&world);
}

TEST(a_program_that_cannot_run_in_a_container_is_reported)
{
        char *argv[] = { (char[]){ "/no/such/program" }, NULL };
        cleanup_free char *id = NULL;
        const ShimEvent *event;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        id = start_container(&pod, &world, "cannot", "sleep 3600");
        pod_exec_in(&pod, "a", &(SandboxContainerExec){ .container = id, .argv = argv });
        event = pod_expect(&pod, SHIM_EVENT_EXEC_DONE, "a");
        EXPECT(strstr(event->message, "/no/such/program"));
        event = run_in(&pod, "nobody", "true", 0);
        EXPECT_STREQ(event->message, "the container is not running");
        pod_down(&pod);
        world_done(&world);
}

TEST(many_concurrent_programs_return_their_own_results)
{
        enum {
                MANY = 12,
        };
        cleanup_free char *id = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        id = start_container(&pod, &world, "crowd", "sleep 3600");
        for (unsigned i = 0; i < MANY; i++) {
                cleanup_free char *name = print_text("p%u", i);
                cleanup_free char *script = print_text("echo %u; exit %u", i, i);

                ask_in(&pod, id, name, script, 60 * USEC_PER_SEC);
        }
        for (unsigned i = 0; i < MANY; i++) {
                cleanup_free char *name = print_text("p%u", i), *output = print_text("%u\n", i);
                const ShimEvent *event;

                pod.cursor = 0;
                event = pod_expect(&pod, SHIM_EVENT_EXEC_DONE, name);
                EXPECT_EQ(event->exit_code, i);
                EXPECT_STREQ(event->output, output);
        }
        pod_down(&pod);
        world_done(&world);
}

TEST(a_delayed_stop_happens_without_an_agent)
{
        cleanup_free char *id = NULL;
        const ShimEvent *event;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        id = start_container(&pod, &world, "announced",
                             "trap 'exit 7' TERM; echo >/tmp/ready; "
                             "while true; do sleep 0.01; done");
        wait_until_ready(&pod, id);
        EXPECT_EQ(sandbox_stop_container_delayed(pod.sandbox, id, SIGTERM, 300 * USEC_PER_MSEC,
                                                 60 * USEC_PER_SEC),
                  0);
        (void) run_in(&pod, id, "true", 0); /* the shim receives it before we disconnect */
        pod_disconnect(&pod);
        for (unsigned i = 0; i < 100; i++)
                (void) sd_event_run(world.event, USEC_PER_SEC / 100);
        pod_reconnect(&pod);
        event = pod_expect(&pod, SHIM_EVENT_EXITED, id);
        EXPECT_EQ(event->exit_code, 7);
        pod_down(&pod);
        world_done(&world);
}

TEST(a_delayed_stop_happens_at_once_on_a_second_request)
{
        cleanup_free char *id = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        id = start_container(&pod, &world, "hurry",
                             "trap 'exit 7' TERM; echo >/tmp/ready; "
                             "while true; do sleep 0.01; done");
        wait_until_ready(&pod, id);
        EXPECT_EQ(sandbox_stop_container_delayed(pod.sandbox, id, SIGTERM, 3600 * USEC_PER_SEC,
                                                 3600 * USEC_PER_SEC),
                  0);
        (void) run_in(&pod, id, "true", 0);
        EXPECT(!pod_find(&pod, SHIM_EVENT_EXITED, id));
        EXPECT_EQ(sandbox_stop_container(pod.sandbox, id, SIGTERM, 3600 * USEC_PER_SEC), 0);
        EXPECT_EQ(pod_expect(&pod, SHIM_EVENT_EXITED, id)->exit_code, 7);
        pod_down(&pod);
        world_done(&world);
}

TEST(a_changed_checkpoint_is_reported_to_the_next_agent)
{
        cleanup_free char *id = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        id = start_container(&pod, &world, "note", "sleep 3600");
        EXPECT_EQ(sandbox_set_container_note(pod.sandbox, id, "second"), 0);
        EXPECT_EQ(sandbox_set_container_note(pod.sandbox, "nobody", "third"), 0);
        pod_disconnect(&pod);
        pod_reconnect(&pod);
        EXPECT_STREQ(pod_expect(&pod, SHIM_EVENT_STARTED, id)->note, "second");
        pod_down(&pod);
        world_done(&world);
}
