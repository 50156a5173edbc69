/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/file.h"
#include "common/process-usage.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* A list of processes in the format of cgroup.procs. */
static const char *write_list(const char *text) {
        static char path[512];
        cleanup_close int fd = -EBADF;

        (void) snprintf(path, sizeof(path), "%s/cgroup.procs", test_directory());
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        REQUIRE(fd >= 0 && write_all(fd, text, strlen(text)) >= 0);
        return path;
}

static ProcessUsage usage_of(const char *list) {
        ProcessUsage usage = { 0 };

        EXPECT_EQ(process_usage_of_cgroup(write_list(list), getpid(), &usage), 0);
        return usage;
}

TEST(the_limit_of_open_files_is_the_soft_one)
{
        EXPECT_EQ(open_files_max_parse("Limit                     Soft Limit           Hard Limit  "
                                       "         Units     \n"
                                       "Max processes             5                    6           "
                                       "         processes \n"
                                       "Max open files            1024                 524288      "
                                       "         files     \n"),
                  1024);
        EXPECT_EQ(open_files_max_parse("Max open files            unlimited            unlimited   "
                                       "         files     \n"),
                  OPEN_FILES_UNLIMITED);
        EXPECT_EQ(open_files_max_parse("Max open files            \n"), 0);
        EXPECT_EQ(open_files_max_parse("Max open"), 0);
        EXPECT_EQ(open_files_max_parse(""), 0);
}

TEST(descriptors_and_sockets_of_processes_are_counted)
{
        cleanup_free char *own = NULL;
        ProcessUsage before, after;
        struct rlimit limit;
        int pair[2];

        REQUIRE(asprintf(&own, "%d\n", (int) getpid()) >= 0);
        before = usage_of(own);
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) >= 0);
        after = usage_of(own);
        EXPECT_EQ(after.n_descriptors, before.n_descriptors + 2);
        EXPECT_EQ(after.n_sockets, before.n_sockets + 2);
        close_fd(pair[0]);
        close_fd(pair[1]);
        REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) >= 0);
        EXPECT_EQ(after.open_files_max, limit.rlim_cur);
}

TEST(a_list_without_running_processes_has_no_descriptors)
{
        EXPECT_EQ(usage_of("").n_descriptors, 0);
        EXPECT_EQ(usage_of("0\n").n_descriptors, 0);
        EXPECT_EQ(usage_of("2147483647\n").n_descriptors, 0);
        EXPECT_EQ(usage_of("no number\n").n_descriptors, 0);
}

TEST(a_truncated_pid_is_ignored)
{
        cleanup_free char *cut = NULL;

        REQUIRE(asprintf(&cut, "2147483647\n%d", (int) getpid()) >= 0);
        EXPECT_EQ(usage_of(cut).n_descriptors, 0);
}

TEST(number_of_counted_descriptors_is_limited)
{
        cleanup_free char *list = NULL, *own = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&list, &size);
        ProcessUsage one, many;

        REQUIRE(out);
        for (unsigned i = 0; i < PROCESS_USAGE_PROCESSES_MAX + 1; i++)
                (void) fprintf(out, "%d\n", (int) getpid());
        REQUIRE(fclose(out) == 0 && asprintf(&own, "%d\n", (int) getpid()) >= 0);
        one = usage_of(own);
        many = usage_of(list);
        EXPECT_EQ(many.n_descriptors, MIN(one.n_descriptors * PROCESS_USAGE_PROCESSES_MAX,
                                          (uint64_t) PROCESS_USAGE_DESCRIPTORS_MAX));
        EXPECT_EQ(process_usage_of_cgroup("/no/such/file", getpid(), &many), -ENOENT);
}
