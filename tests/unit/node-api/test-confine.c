/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/process/api-confine.h"

#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/net.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The error of each system call in a process with the filter; 0: the call was allowed. */
typedef struct Outcome {
        int confined, local, internet, multiplexed, pair, clock, file;
} Outcome;

static int error_of(long result) {
        return result < 0 ? errno : 0;
}

static void try_in_child(Outcome *outcome) {
        int pair[2];
        struct timespec now;

        outcome->confined = confine_api_system_calls(NULL);
        outcome->local = error_of(syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        outcome->internet = error_of(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
#ifdef SYS_socketcall
        outcome->multiplexed = error_of(
                syscall(SYS_socketcall, SYS_SOCKET, (unsigned long[]){ AF_INET, SOCK_STREAM, 0 }));
#else
        outcome->multiplexed = EPERM;
#endif
        outcome->pair = error_of(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
        outcome->clock = error_of(clock_gettime(CLOCK_BOOTTIME, &now));
        outcome->file = error_of(syscall(SYS_unlinkat, AT_FDCWD, "/does-not-exist", 0));
        _exit(EXIT_SUCCESS);
}

TEST(the_confined_process_can_only_create_local_sockets)
{
        Outcome *outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        int status;
        pid_t pid;

        REQUIRE(outcome != MAP_FAILED);
        pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0)
                try_in_child(outcome);
        REQUIRE(waitpid(pid, &status, 0) == pid);
        EXPECT_EQ(status, 0);
        EXPECT_EQ(outcome->confined, 0);
        EXPECT_EQ(outcome->local, 0);
        EXPECT_EQ(outcome->internet, EPERM);
        EXPECT_EQ(outcome->multiplexed, EPERM);
        EXPECT_EQ(outcome->pair, 0);
        EXPECT_EQ(outcome->clock, 0);
        EXPECT_EQ(outcome->file, EPERM);
        (void) munmap(outcome, sizeof(*outcome));
}
