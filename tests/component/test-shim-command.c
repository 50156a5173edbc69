/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of mainstay-shim, and the state of a sandbox process. */
#include "tests/component/pod-world.h"

/* Runs the program to its end; returns its exit status, and its output if requested. */
static int run_shim_command(const char *const *arguments, char **ret_output) {
        char *argv[8] = { (char[]){ BUILD_DIR "/agent/mainstay-shim" } };
        int pipes[2], status = 0;
        pid_t pid;

        for (size_t i = 0; arguments[i]; i++)
                argv[i + 1] = (char *) (uintptr_t) arguments[i];
        REQUIRE(pipe2(pipes, O_CLOEXEC) >= 0);
        pid = fork();
        if (pid == 0) {
                (void) dup2(pipes[1], STDOUT_FILENO);
                (void) dup2(pipes[1], STDERR_FILENO);
                (void) execv(argv[0], argv);
                _exit(127);
        }
        close_fd(pipes[1]);
        REQUIRE(read_stream(pipes[0], MIB, ret_output, NULL) >= 0);
        close_fd(pipes[0]);
        REQUIRE(waitpid(pid, &status, 0) == pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(an_invalid_command_line_has_exit_status_two)
{
        static const struct {
                const char *arguments[6];
                int status;
                const char *says;
        } cases[] = {
                { { "--help" }, 0, "Usage: mainstay-shim sandbox" },
                { { "--version" }, 0, "mainstay-shim " MAINSTAY_VERSION "\n" },
                { { NULL }, 2, "Expected a verb" },
                { { "dance" }, 2, "Unknown verb" },
                { { "prepare" }, 2, "Expected one or two absolute paths" },
                { { "prepare", "relative" }, 2, "Expected one or two absolute paths" },
                { { "cleanup", "relative" }, 2, "Expected absolute paths" },
                { { "cleanup", "--cgroup", "/" }, 2, "other than the root" },
                { { "cleanup", "--shim-cgroup", "/" }, 2, "other than the root" },
                { { "cleanup", "--what" }, 2, "unrecognized option" },
                { { "sandbox" }, 2, "Expected --pod UID" },
                { { "sandbox", "--pod", "../x", "--run-dir", "/run" }, 2, "Expected --pod UID" },
                { { "sandbox", "--runtime-timeout", "never" }, 2, "Unknown or incomplete option" },
                { { "cleanup" }, 0, "" },
                { { "cleanup", "--cgroup", "/no/such/group", "/no/such/directory" }, 0, "" },
                { { "cleanup", "--shim-cgroup", "/no/such/group" }, 0, "" },
                { { "prepare", "/dev/null/x" },
                  1,
                  "cannot make '/dev/null/x' a private mount: "
                  "Not a directory" },
        };

        become_host();
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *output = NULL;

                EXPECT_EQ(run_shim_command(cases[i].arguments, &output), cases[i].status);
                if (!strstr(output, cases[i].says))
                        EXPECT_STREQ(output, cases[i].says);
        }
}

static bool same_namespace(pid_t pid, const char *name) {
        cleanup_free char *path = print_text("/proc/%d/ns/%s", pid, name);
        cleanup_free char *own = print_text("/proc/self/ns/%s", name);
        struct stat theirs, ours;

        REQUIRE(stat(path, &theirs) >= 0 && stat(own, &ours) >= 0);
        return theirs.st_ino == ours.st_ino;
}

TEST(a_sandbox_is_in_the_requested_namespaces)
{
        PodWorld world;

        world_init(&world);
        for (unsigned i = 0; i < 4; i++) {
                cleanup_free char *uid = print_text("ns%u", i);
                bool host_network = i & 1, host_ipc = i & 2;
                TestPod pod;
                pid_t pid;

                pod_init(&pod, &world, uid);
                EXPECT_EQ(sandbox_start(pod.sandbox,
                                        &(SandboxStartOptions){ .host_network = host_network,
                                                                .host_ipc = host_ipc },
                                        NULL),
                          0);
                (void) pod_expect(&pod, SHIM_EVENT_SYNCED, NULL);
                pid = sandbox_pid(pod.sandbox);
                EXPECT_EQ(same_namespace(pid, "net"), host_network);
                EXPECT_EQ(same_namespace(pid, "uts"), host_network);
                EXPECT_EQ(same_namespace(pid, "ipc"), host_ipc);
                EXPECT(!same_namespace(pid, "mnt"));
                EXPECT(same_namespace(pid, "pid"));
                pod_down(&pod);
        }
        world_done(&world);
}

TEST(a_sandbox_inherits_nothing_but_its_socket)
{
        cleanup_free char *fds = NULL, *cgroups = NULL, *path = NULL, *group = NULL;
        cleanup_closedir DIR *dir = NULL;
        cleanup_close int leak = open("/dev/null", O_RDONLY | O_CLOEXEC);
        int highest = 0;
        PodWorld world;
        TestPod pod;

        REQUIRE(leak >= 0 && dup2(leak, 50) == 50); /* inherited by execve() */
        world_init(&world);
        pod_up(&pod, &world, "alone");
        fds = print_text("/proc/%d/fd", sandbox_pid(pod.sandbox));
        dir = opendir(fds);
        REQUIRE(dir);
        for (struct dirent *entry; (entry = readdir(dir));)
                highest = MAX(highest, (int) strtol(entry->d_name, NULL, 10));
        EXPECT(highest < 10);
        EXPECT_EQ(getsid(sandbox_pid(pod.sandbox)), sandbox_pid(pod.sandbox));
        path = print_text("/proc/%d/cgroup", sandbox_pid(pod.sandbox));
        cgroups = read_text(path);
        group = print_text(":%s/shims/alone\n", world.cgroup);
        EXPECT(strstr(cgroups, group));
        (void) close(50);
        pod_down(&pod);
        world_done(&world);
}
