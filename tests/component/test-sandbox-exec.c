/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that the shim runs for the agent. */

#include "tests/component/pod-world.h"

static char *environment[] = { (char[]){ "GREETING=hello" }, NULL };

/* Runs a shell script; 'id' is that of the event. */
static void start_program(TestPod *pod, const char *id, const char *script, const char *input,
                          bool in_host, uint64_t timeout_usec) {
        char *argv[] = { (char[]){ "/bin/busybox" }, (char[]){ "sh" }, (char[]){ "-c" },
                         (char *) (uintptr_t) script, NULL };

        pod_run_program(pod, id,
                        &(SandboxProgram){ .argv = argv,
                                           .environment = environment,
                                           .input = input,
                                           .in_host = in_host,
                                           .timeout_usec = timeout_usec });
}

static const ShimEvent *run_program(TestPod *pod, const char *script, const char *input,
                                    bool in_host) {
        start_program(pod, "t", script, input, in_host, 0);
        return pod_expect(pod, SHIM_EVENT_EXEC_DONE, "t");
}

static void isolated_up(TestPod *pod, PodWorld *world, const char *uid) {
        cleanup_free char *fstab = NULL;

        pod_init(pod, world, uid);
        REQUIRE(sandbox_start(pod->sandbox, &(SandboxStartOptions){ 0 }, NULL) == 0);
        (void) pod_expect(pod, SHIM_EVENT_SYNCED, NULL);
        fstab = path_join(pod->directory, "fstab");
        write_text(fstab, "");
        EXPECT_EQ(sandbox_setup(pod->sandbox,
                                &(SandboxSetupOptions){ .fstab = fstab, .hostname = "inside" }),
                  0);
        (void) pod_expect(pod, SHIM_EVENT_READY, NULL);
}

TEST(a_program_gets_its_input_and_environment_and_its_output_and_status_are_returned)
{
        PodWorld world;
        TestPod pod;
        const ShimEvent *event;

        world_init(&world);
        isolated_up(&pod, &world, "exec");
        event = run_program(&pod,
                            "read x; echo \"$GREETING $x\"; echo first >&2; echo why >&2; exit 7",
                            "world\n", false);
        EXPECT_STREQ(event->output, "hello world\n");
        EXPECT_STREQ(event->error, "why");
        EXPECT_STREQ(event->message, "");
        EXPECT_EQ(event->exit_code, 7);
        EXPECT(!event->timed_out);
        event = run_program(&pod, "cat; env | grep -v -E '^(GREETING|PATH|PWD|SHLVL)='", NULL,
                            true);
        EXPECT_STREQ(event->output, "");
        event = run_program(&pod, "kill -9 $$", NULL, false);
        EXPECT_EQ(event->exit_code, 137);
        EXPECT_EQ(event->signal, 9);
        event = run_program(&pod, "printf 'a\\0\\377b'", NULL, false);
        EXPECT_STREQ(event->output, "a??b");
        pod_down(&pod);
        world_done(&world);
}

TEST(a_program_runs_in_the_requested_namespaces)
{
        char here[64] = "", host[65] = "";
        cleanup_free char *here_line = NULL, *host_line = NULL;
        PodWorld world;
        TestPod pod;
        const ShimEvent *event;

        world_init(&world);
        isolated_up(&pod, &world, "where");
        REQUIRE(readlink("/proc/self/ns/net", here, sizeof(here) - 1) > 0);
        REQUIRE(gethostname(host, sizeof(host)) == 0);
        here_line = print_text("%s\n", here);
        host_line = print_text("%s\n", host);
        event = run_program(&pod, "readlink /proc/self/ns/net", NULL, true);
        EXPECT_STREQ(event->output, here_line);
        event = run_program(&pod, "readlink /proc/self/ns/net", NULL, false);
        EXPECT(!streq(event->output, here_line));
        event = run_program(&pod, "hostname", NULL, true);
        EXPECT_STREQ(event->output, host_line);
        event = run_program(&pod, "hostname", NULL, false);
        EXPECT_STREQ(event->output, "inside\n");
        event = run_program(&pod, "ip link show lo", NULL, false);
        EXPECT(strstr(event->output, "<LOOPBACK,UP"));
        pod_down(&pod);
        world_done(&world);
}

/* The interfaces that a plugin sees in the namespace that it receives as a parameter, and in its
 * own. */
static char look[] = "readlink /proc/self/ns/net; readlink $CNI_NETNS; "
                     "nsenter --net=$CNI_NETNS ip -o addr show dev eth0 | sed 's/^.* inet/inet/'";

/* 'netns' may not exist any more. The caller frees the output. */
static char *look_at(TestPod *pod, const char *netns, const char *interface, const char *address) {
        cleanup_free char *variable = print_text("CNI_NETNS=%s", netns);
        char *argv[] = { (char[]){ "/bin/busybox" }, (char[]){ "sh" }, (char[]){ "-c" }, look,
                         NULL };
        const ShimEvent *event;

        pod_run_program(pod, "look",
                        &(SandboxProgram){ .argv = argv,
                                           .environment = (char *[]){ variable, NULL },
                                           .in_host = true,
                                           .interface = interface,
                                           .address = address });
        event = pod_expect(pod, SHIM_EVENT_EXEC_DONE, "look");
        EXPECT_STREQ(event->message, "");
        EXPECT_EQ(event->exit_code, 0);
        return strdup(event->output);
}

TEST(a_plugin_gets_a_dummy_interface_if_the_real_one_is_missing)
{
        cleanup_free char *netns = NULL, *lost = NULL, *cut = NULL, *whole = NULL;
        char here[64] = "";
        PodWorld world;
        TestPod pod;

        world_init(&world);
        isolated_up(&pod, &world, "dummy");
        REQUIRE(readlink("/proc/self/ns/net", here, sizeof(here) - 1) > 0);
        netns = print_text("/proc/%d/ns/net", (int) sandbox_pid(pod.sandbox));
        lost = look_at(&pod, "", "eth0", "192.0.2.1");
        cut = look_at(&pod, netns, "eth0", "fd00::1");
        whole = look_at(&pod, netns, "lo", "192.0.2.1");
        EXPECT(strncmp(lost, here, strlen(here)) == 0);
        EXPECT(!strstr(lost + strlen(here), here));
        EXPECT(strstr(lost, "\ninet 192.0.2.1/"));
        EXPECT(strstr(cut, "\ninet6 fd00::1/128") && !strstr(cut, "192.0.2.1"));
        EXPECT_STREQ(whole, "");
        pod_down(&pod);
        world_done(&world);
}

TEST(a_program_that_hangs_is_killed_with_its_children)
{
        PodWorld world;
        TestPod pod;
        const ShimEvent *event;

        world_init(&world);
        isolated_up(&pod, &world, "hang");
        start_program(&pod, "t", "echo started; sleep 1000 & sleep 1000", NULL, true,
                      10 * USEC_PER_SEC);
        event = pod_expect(&pod, SHIM_EVENT_EXEC_DONE, "t");
        EXPECT(event->timed_out);
        EXPECT_EQ(event->signal, SIGKILL);
        EXPECT_STREQ(event->output, "started\n");
        pod_down(&pod);
        world_done(&world);
}

TEST(a_program_that_cannot_run_is_reported)
{
        char *argv[] = { (char[]){ "/no/such/program" }, NULL }, *nothing[] = { NULL };
        PodWorld world;
        TestPod pod;
        const ShimEvent *event;

        world_init(&world);
        isolated_up(&pod, &world, "none");
        pod_run_program(&pod, "a", &(SandboxProgram){ .argv = argv });
        event = pod_expect(&pod, SHIM_EVENT_EXEC_DONE, "a");
        EXPECT_STREQ(event->message, "cannot run '/no/such/program': No such file or directory");
        pod_run_program(&pod, "b", &(SandboxProgram){ .argv = nothing });
        event = pod_expect(&pod, SHIM_EVENT_EXEC_DONE, "b");
        EXPECT_STREQ(event->message, "Invalid argument");
        pod_down(&pod);
        world_done(&world);
}

TEST(output_beyond_the_limit_is_dropped_and_the_program_does_not_block)
{
        PodWorld world;
        TestPod pod;
        const ShimEvent *event;

        world_init(&world);
        isolated_up(&pod, &world, "much");
        event = run_program(
                &pod, "head -c 3000000 /dev/zero | tr '\\0' '\\1'; head -c 100000 /dev/zero >&2",
                NULL, true);
        EXPECT_EQ(event->exit_code, 0);
        EXPECT(event->output[0] == '\1');
        pod_down(&pod);
        world_done(&world);
}

TEST(programs_in_the_nodes_namespaces_run_one_by_one_and_others_do_not_wait)
{
        cleanup_free char *first = NULL, *second = NULL, *file = NULL, *go = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        isolated_up(&pod, &world, "turns");
        file = path_join(world.directory, "order");
        go = path_join(world.directory, "go");
        first = print_text("until [ -e %s ]; do sleep 0.01; done; echo one >>%s", go, file);
        second = print_text("echo two >>%s", file);
        start_program(&pod, "1", first, NULL, true, 0);
        start_program(&pod, "2", second, NULL, true, 0);
        start_program(&pod, "3", "true", NULL, false, 0);
        (void) pod_expect(&pod, SHIM_EVENT_EXEC_DONE, "3");
        EXPECT(!pod_find(&pod, SHIM_EVENT_EXEC_DONE, "1"));
        write_text(go, "");
        (void) pod_expect(&pod, SHIM_EVENT_EXEC_DONE, "1");
        (void) pod_expect(&pod, SHIM_EVENT_EXEC_DONE, "2");
        free(first);
        first = read_text(file);
        EXPECT_STREQ(first, "one\ntwo\n");
        pod_down(&pod);
        world_done(&world);
}

TEST(a_teardown_waits_for_a_program_up_to_a_limit_and_starts_none)
{
        cleanup_free char *file = NULL, *script = NULL, *go = NULL, *first = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        isolated_up(&pod, &world, "end");
        file = path_join(world.directory, "started");
        script = print_text("echo x >%s", file);
        go = path_join(world.directory, "go");
        first = print_text("until [ -e %s ]; do sleep 0.01; done", go);
        start_program(&pod, "1", first, NULL, true, 0);
        start_program(&pod, "2", script, NULL, true, 0);
        EXPECT_EQ(sandbox_teardown(pod.sandbox), 0);
        write_text(go, "");
        (void) pod_expect(&pod, SHIM_EVENT_LOST, NULL);
        EXPECT(pod_find(&pod, SHIM_EVENT_EXEC_DONE, "1"));
        pod_done(&pod);
        EXPECT(access(file, F_OK) < 0);
        world_done(&world);
}
