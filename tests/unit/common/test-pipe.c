/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pipe.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static bool blocks(int fd) {
        return !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

static int lowest_free_fd(void) {
        int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

        (void) close(fd);
        return fd;
}

TEST(only_the_end_of_this_process_is_nonblocking)
{
        const PipeEnd ends[] = { PIPE_READ_END, PIPE_WRITE_END };

        for (size_t i = 0; i < N_ELEMENTS(ends); i++) {
                int fds[2];

                REQUIRE(pipe_open(ends[i], fds) == 0);
                EXPECT(!blocks(fds[ends[i]]));
                EXPECT(blocks(fds[!ends[i]]));
                (void) close(fds[0]);
                (void) close(fds[1]);
        }
}

TEST(a_pipe_carries_bytes_and_is_closed_on_exec)
{
        char text[8];
        int fds[2];

        REQUIRE(pipe_open(PIPE_READ_END, fds) == 0);
        EXPECT_EQ(read(fds[PIPE_READ_END], text, sizeof(text)), -1);
        EXPECT_EQ(errno, EAGAIN);
        EXPECT_EQ(write(fds[PIPE_WRITE_END], "abc", 3), 3);
        EXPECT_EQ(read(fds[PIPE_READ_END], text, sizeof(text)), 3);
        EXPECT_EQ(memcmp(text, "abc", 3), 0);
        EXPECT(fcntl(fds[PIPE_READ_END], F_GETFD) & FD_CLOEXEC);
        EXPECT(fcntl(fds[PIPE_WRITE_END], F_GETFD) & FD_CLOEXEC);
        (void) close(fds[0]);
        (void) close(fds[1]);
}

TEST(nothing_is_left_open_when_descriptors_run_out)
{
        struct rlimit before, few;
        int fds[2], free_before = lowest_free_fd();

        REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
        few = (struct rlimit){ .rlim_cur = (rlim_t) free_before + 1, .rlim_max = before.rlim_max };
        REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
        EXPECT_EQ(pipe_open(PIPE_READ_END, fds), -EMFILE);
        REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
        EXPECT_EQ(lowest_free_fd(), free_before);
}

TEST(flags_of_a_descriptor_are_kept)
{
        int fds[2];

        REQUIRE(pipe_open(PIPE_READ_END, fds) == 0);
        REQUIRE(fcntl(fds[PIPE_WRITE_END], F_SETFL, O_APPEND) == 0);
        EXPECT_EQ(fd_set_nonblocking(fds[PIPE_WRITE_END]), 0);
        EXPECT_EQ(fcntl(fds[PIPE_WRITE_END], F_GETFL) & (O_APPEND | O_NONBLOCK),
                  O_APPEND | O_NONBLOCK);
        (void) close(fds[0]);
        (void) close(fds[1]);
        EXPECT_EQ(fd_set_nonblocking(fds[0]), -EBADF);
}
