/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cgroup.h"

#include "agent/bundle/cgroups.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* A cgroup for this process only. */
static const char *test_group(void) {
        static char path[64];

        (void) snprintf(path, sizeof(path), "/mainstay-test-%d", (int) getpid());
        return path;
}

static char *test_group_path(const char *name) {
        char *path = path_join(test_group(), name);

        REQUIRE(path);
        return path;
}

static bool group_is_there(const char *path, const char *controller) {
        cleanup_free char *file = cgroup_file(path, controller, "cgroup.procs");

        REQUIRE(file);
        return access(file, F_OK) >= 0;
}

static void expect_value(const char *path, const char *controller, const char *file,
                         const char *expected) {
        cleanup_free char *name = cgroup_file(path, controller, file), *value = NULL;
        cleanup_close int fd = -EBADF;

        REQUIRE(name);
        fd = open(name, O_RDONLY | O_CLOEXEC);
        REQUIRE(fd >= 0);
        REQUIRE(read_stream(fd, 4096, &value, NULL) >= 0);
        EXPECT_STREQ(value, expected);
}

/* A process in the cgroup that waits to be killed. */
static pid_t start_in_group(const char *path) {
        int ready[2];
        char byte;
        pid_t pid;

        REQUIRE(pipe2(ready, O_CLOEXEC) >= 0);
        pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0) {
                int r = cgroup_enter(path, NULL);

                (void) !write(ready[1], r < 0 ? "n" : "y", 1);
                for (;;)
                        pause();
        }
        close_fd(ready[1]);
        REQUIRE(read(ready[0], &byte, 1) == 1);
        close_fd(ready[0]);
        EXPECT_EQ(byte, 'y');
        return pid;
}

static int status_of(pid_t pid) {
        int status = -1;

        REQUIRE(waitpid(pid, &status, 0) == pid);
        return status;
}

TEST(a_cgroup_is_created_with_its_parents_and_controllers)
{
        static const char *const controllers[] = { "cpu", "memory", "pids" };
        cleanup_free char *path = test_group_path("a/b");

        EXPECT_EQ(cgroup_create(path, NULL), 0);
        EXPECT_EQ(cgroup_create(path, NULL), 0);
        for (size_t i = 0; i < N_ELEMENTS(controllers); i++)
                EXPECT(group_is_there(path, controllers[i]));
        EXPECT_EQ(cgroup_remove(test_group()), 0);
}

TEST(a_cgroup_is_removed_with_its_children_in_every_hierarchy)
{
        cleanup_free char *path = test_group_path("a/b/c");

        EXPECT_EQ(cgroup_create(path, NULL), 0);
        EXPECT_EQ(cgroup_remove(test_group()), 0);
        EXPECT(!group_is_there(test_group(), "cpu"));
        EXPECT(!group_is_there(test_group(), "memory"));
        EXPECT(!group_is_there(test_group(), "pids"));
        EXPECT_EQ(cgroup_remove(test_group()), 0);
}

TEST(a_value_is_written_in_the_hierarchy_of_its_controller)
{
        EXPECT_EQ(cgroup_create(test_group(), NULL), 0);
        EXPECT_EQ(cgroup_write(test_group(), "pids", "pids.max", "77", NULL), 0);
        expect_value(test_group(), "pids", "pids.max", "77\n");
        EXPECT_EQ(cgroup_remove(test_group()), 0);
}

TEST(a_memory_limit_changes_the_limit_of_memory_and_swap)
{
        static const char *const values[] = { "67108864", "16777216", "33554432" };
        cleanup_free char *file = cgroup_file("", "memory", "memory.memsw.limit_in_bytes");
        const char *path = test_group();

        REQUIRE(cgroup_create(path, NULL) == 0);
        if (cgroup_version() == 1 && access(file, F_OK) >= 0) {
                REQUIRE(cgroup_write(path, "memory", "memory.limit_in_bytes", "33554432", NULL) ==
                        0);
                expect_value(path, "memory", "memory.limit_in_bytes", "33554432\n");
                REQUIRE(cgroup_write(path, "memory", "memory.memsw.limit_in_bytes", "33554432",
                                     NULL) == 0);
                for (size_t i = 0; i < N_ELEMENTS(values); i++) {
                        char expected[32];

                        (void) snprintf(expected, sizeof(expected), "%s\n", values[i]);
                        EXPECT_EQ(cgroup_write(path, "memory", "memory.limit_in_bytes", values[i],
                                               NULL),
                                  0);
                        expect_value(path, "memory", "memory.limit_in_bytes", expected);
                        expect_value(path, "memory", "memory.memsw.limit_in_bytes", expected);
                }
        }
        EXPECT_EQ(cgroup_remove(path), 0);
}

TEST(a_value_that_the_kernel_refuses_is_an_error_with_its_place)
{
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(cgroup_create(test_group(), NULL), 0);
        EXPECT_EQ(cgroup_write(test_group(), "pids", "pids.max", "many", &error), -EINVAL);
        EXPECT(error.message && strstr(error.message, "'many'") &&
               strstr(error.message, "pids.max"));
        EXPECT_EQ(cgroup_remove(test_group()), 0);
}

TEST(a_missing_controller_of_the_kernel_is_named)
{
        cleanup_error Error error = ERROR_NULL;

        EXPECT(cgroup_has_controller("memory") && cgroup_has_controller("pids"));
        EXPECT(!cgroup_has_controller("pid") && !cgroup_has_controller("mem"));
        EXPECT_EQ(cgroup_create(test_group(), NULL), 0);
        EXPECT_EQ(cgroup_write(test_group(), "mem", "mem.max", "1", &error), -ENOENT);
        EXPECT(error.message && strstr(error.message, "mem.max: the cgroup controller 'mem'"));
        EXPECT_EQ(cgroup_remove(test_group()), 0);
}

TEST(writing_a_value_fails_if_the_cgroup_is_missing)
{
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(cgroup_write(test_group(), "pids", "pids.max", "1", &error), -ENOENT);
        EXPECT(error.message && strstr(error.message, "No such file"));
}

TEST(a_cgroup_with_a_process_is_busy_until_the_process_is_killed)
{
        cleanup_free char *inner = test_group_path("pod/container");
        pid_t pid;

        EXPECT_EQ(cgroup_create(inner, NULL), 0);
        EXPECT(!cgroup_has_processes(test_group()));
        pid = start_in_group(inner);
        EXPECT(cgroup_has_processes(test_group()));
        EXPECT_EQ(cgroup_remove(test_group()), -EBUSY);

        /* From here on only the test reaps it: a zombie is not in any cgroup. */
        EXPECT_EQ(cgroup_kill(test_group()), 0);
        EXPECT_EQ(status_of(pid), SIGKILL);
        EXPECT_EQ(cgroup_remove(test_group()), 0);
}

static bool is_group_frozen(const char *file) {
        cleanup_close int fd = open(file, O_RDONLY | O_CLOEXEC);
        cleanup_free char *text = NULL;

        return fd >= 0 && read_stream(fd, 64, &text, NULL) >= 0 &&
               (streq(text, "FROZEN\n") || streq(text, "1\n"));
}

/* On version 1, the pod's cgroup is not created in the hierarchy of the freezer; only the runtime
 * creates the container's cgroup there. */
TEST(a_frozen_process_is_killed)
{
        bool v2 = cgroup_version() == 2;
        cleanup_free char *file =
                cgroup_file(test_group(), "freezer", v2 ? "cgroup.freeze" : "freezer.state");
        cleanup_free char *directory = strndup(file, (size_t) (strrchr(file, '/') - file));
        pid_t pid;

        REQUIRE(cgroup_create(test_group(), NULL) == 0);
        REQUIRE(mkdir_parents_at(AT_FDCWD, directory, 0755) == 0);
        pid = start_in_group(test_group());
        REQUIRE(write_value_at(AT_FDCWD, file, v2 ? "1" : "FROZEN") == 0);
        for (unsigned i = 0; i < 36000 && !is_group_frozen(file); i++)
                usleep(5000);
        REQUIRE(is_group_frozen(file));
        EXPECT_EQ(cgroup_kill(test_group()), 0);
        EXPECT_EQ(status_of(pid), SIGKILL);
        EXPECT_EQ(cgroup_remove(test_group()), 0);
}

TEST(a_cgroup_that_a_container_has_hidden_is_killed_and_removed)
{
        cleanup_free char *hidden = test_group_path(".x/..y");
        pid_t pid;

        REQUIRE(cgroup_create(hidden, NULL) >= 0);
        pid = start_in_group(hidden);
        EXPECT(cgroup_has_processes(test_group()));
        EXPECT_EQ(cgroup_kill(test_group()), 0);
        EXPECT(WIFSIGNALED(status_of(pid)));
        EXPECT_EQ(cgroup_remove(test_group()), 0);
        EXPECT(!group_is_there(test_group(), "memory"));
}

TEST(killing_reaches_all_levels_and_spares_other_cgroups)
{
        cleanup_free char *inner = test_group_path("one/inner"), *outer = test_group_path("one"),
                          *other = test_group_path("two");
        pid_t pids[3];

        EXPECT_EQ(cgroup_create(inner, NULL), 0);
        EXPECT_EQ(cgroup_create(other, NULL), 0);
        pids[0] = start_in_group(inner);
        pids[1] = start_in_group(other);
        EXPECT_EQ(cgroup_kill(outer), 0);
        EXPECT_EQ(status_of(pids[0]), SIGKILL);
        EXPECT_EQ(waitpid(pids[1], NULL, WNOHANG), 0);
        EXPECT_EQ(cgroup_kill(other), 0);
        EXPECT_EQ(status_of(pids[1]), SIGKILL);
        EXPECT_EQ(cgroup_remove(test_group()), 0);
}

TEST(an_empty_or_missing_cgroup_is_killed_at_once)
{
        EXPECT_EQ(cgroup_kill(test_group()), 0);
        EXPECT_EQ(cgroup_create(test_group(), NULL), 0);
        EXPECT_EQ(cgroup_kill(test_group()), 0);
        EXPECT_EQ(cgroup_remove(test_group()), 0);
}

TEST(a_container_of_an_earlier_version_keeps_its_scope)
{
        cleanup_free char *slice = NULL, *former = NULL, *found = NULL, *next = NULL;
        const char *name;

        REQUIRE(asprintf(&slice, "%s.slice", test_group()) > 0);
        REQUIRE(asprintf(&former, "%s/mainstay-7.scope", slice) > 0);
        REQUIRE(cgroup_create(former, NULL) == 0);
        found = cgroup_of_container(slice, "7");
        next = cgroup_of_container(slice, "8");
        EXPECT_STREQ(found, former);
        name = strrchr(next, '/');
        EXPECT_STREQ(name, "/cri-containerd-8.scope");
        EXPECT_EQ(cgroup_remove(slice), 0);
}
